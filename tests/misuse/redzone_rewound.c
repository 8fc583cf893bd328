/* SPDX-License-Identifier: Apache-2.0 */
/* An object is written to past its end, and the reap goes back to a mark. */
#include "misuse.h"

int main(void)
{
    use_options("redzone=100,bypass=1");
    reap_mark mark;
    void *reap = new_reap();
    reapMark(&reap, &mark);
    char *object = reapMalloc(&reap, 0);
    memset((char *)opaque(object) + 127, 0, 1);
    expect_apart("reapRewind", object, "memory around it was written to", 0, 127, reap, "");
    reapRewind(&reap, &mark);
}
