/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer into an object of malloc is freed. */
#include "misuse.h"

int main(void)
{
    use_options("bypass=1");
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100);
    expect("reapFree", object + 16, "not the start of an object");
    reapFree(&reap, object + 16);
}
