/* SPDX-License-Identifier: Apache-2.0 */
/* A function that reapRewind runs closes a mark outside of the one that the reap is going back to. */
#include "misuse.h"

static void *reap;
static reap_mark outer, mark, inner;

static void close_marks(void *arg)
{
    (void)arg;
    reapMark(&reap, &inner);
    reapUnmark(&reap, &inner);
    expect("reapUnmark", &outer, "reap is going back to it, or to a later mark");
    reapUnmark(&reap, &outer);
}

int main(void)
{
    reap = new_reap();
    reapMark(&reap, &outer);
    reapMark(&reap, &mark);
    reapOnDestroy(&reap, close_marks, NULL);
    reapRewind(&reap, &mark);
}
