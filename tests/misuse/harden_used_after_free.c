/* SPDX-License-Identifier: Apache-2.0 */
/* A freed object is written to; this is found as the program exits, at the latest. */
#include "misuse.h"

int main(void)
{
    use_options("harden=1");
    void *reap = new_reap();
    reapSetName(&reap, "a request");
    char *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    memset((char *)opaque(object) + 50, 0, 1);
    expect_apart("reapFree", object, "memory was written to after it was freed", 100, 50, reap, "a request");
    reapDestroy(&reap);
}
