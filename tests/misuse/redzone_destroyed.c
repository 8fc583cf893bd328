/* SPDX-License-Identifier: Apache-2.0 */
/* An object in a child is written to past its end; the parent is destroyed. */
#include "misuse.h"

int main(void)
{
    use_options("redzone=16");
    void *reap = new_reap(), *child;
    reapCreate(&child, &reap);
    char *object = reapMalloc(&child, 64);
    reapMalloc(&child, 64);
    memset(opaque(object), 0, 65);
    expect_apart("reapDestroy", object, "memory around it was written to", 64, 64, child, "");
    reapDestroy(&reap);
}
