/* SPDX-License-Identifier: Apache-2.0 */
/* A block of malloc is given to reapFree. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *block = malloc(100);
    expect("reapFree", block, "not a reap's object");
    reapFree(&reap, opaque(block));
}
