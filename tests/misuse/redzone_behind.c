/* SPDX-License-Identifier: Apache-2.0 */
/* An object is written to past its end, by one byte, and freed. */
#include "misuse.h"

int main(void)
{
    use_options("redzone=16");
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100);
    memset(opaque(object), 0, 101);
    reapSetName(&reap, "session");
    expect_apart("reapFree", object, "memory around it was written to", 100, 100, reap, "session");
    reapFree(&reap, object);
}
