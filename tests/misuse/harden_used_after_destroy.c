/* SPDX-License-Identifier: Apache-2.0 */
/* What a destroy has freed is written to; the line has the name that the shared reap had. */
#include "misuse.h"

int main(void)
{
    use_options("harden=1");
    void *reap = new_shared_reap(), *other = new_reap();
    char *object = reapMalloc(&reap, 40);
    reapSetName(&reap, "a name of more than forty-seven bytes, which is cut off there");
    const void *handle = reap;
    expect_apart("reapFree", object, "memory was written to after it was freed", 40, 47, handle,
                 "a name of more than forty-seven bytes, which is");
    reapDestroy(&reap);
    memset((char *)opaque(object) + 47, 0, 1);
    for (int i = 0; i < 20000; i++) reapFree(&other, reapMalloc(&other, 100));
    puts("not found");
}
