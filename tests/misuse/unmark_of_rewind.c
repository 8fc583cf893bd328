/* SPDX-License-Identifier: Apache-2.0 */
/* A function that reapRewind runs closes the mark that the reap is going back to. */
#include "misuse.h"

static void *reap;
static reap_mark mark, inner;

static void close_marks(void *arg)
{
    (void)arg;
    reapMark(&reap, &inner);
    reapUnmark(&reap, &inner);
    expect("reapUnmark", &mark, "reap is going back to it, or to a later mark");
    reapUnmark(&reap, &mark);
}

int main(void)
{
    reap = new_reap();
    reapMark(&reap, &mark);
    reapOnDestroy(&reap, close_marks, NULL);
    reapRewind(&reap, &mark);
}
