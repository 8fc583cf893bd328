/* SPDX-License-Identifier: Apache-2.0 */
/* A block of malloc that is no object is freed, where objects are blocks, too. */
#include "misuse.h"

int main(void)
{
    use_options("bypass=1");
    void *reap = new_reap(), *block = malloc(100);
    reapMalloc(&reap, 100);
    expect("reapFree", block, "not a reap's object");
    reapFree(&reap, opaque(block));
}
