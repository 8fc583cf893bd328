/* SPDX-License-Identifier: Apache-2.0 */
/* What a clear has freed is written to; this is found when enough was freed later. */
#include "misuse.h"

int main(void)
{
    use_options("harden=1");
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100);
    reapFreeAll(&reap);
    memset(opaque(object), 0, 1);
    expect_apart("reapFree", object, "memory was written to after it was freed", 100, 0, reap, "");
    for (int i = 0; i < 20000; i++) reapFree(&reap, reapMalloc(&reap, 100));
    puts("not found");
}
