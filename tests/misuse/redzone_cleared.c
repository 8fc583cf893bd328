/* SPDX-License-Identifier: Apache-2.0 */
/* An object is written to past its end, after it was shrunk; its reap is cleared. */
#include "misuse.h"

int main(void)
{
    use_options("harden=1");
    void *reap = new_reap();
    char *object = reapRealloc(&reap, reapMalloc(&reap, 100), 50);
    memset(opaque(object), 0, 51);
    expect_apart("reapFreeAll", object, "memory around it was written to", 50, 50, reap, "");
    reapFreeAll(&reap);
}
