/* SPDX-License-Identifier: Apache-2.0 */
/* An object is written to before its beginning, and resized. */
#include "misuse.h"

int main(void)
{
    use_options("redzone=16");
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100);
    memset((char *)opaque(object) - 1, 0, 1);
    expect_apart("reapRealloc", object, "memory around it was written to", 100, -1, reap, "");
    return reapRealloc(&reap, object, 200) == NULL;
}
