/* SPDX-License-Identifier: Apache-2.0 */
/* An object that a rewind has freed is freed. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reap_mark mark;
    reapMark(&reap, &mark);
    void *object = reapMalloc(&reap, 100);
    reapRewind(&reap, &mark);
    expect("reapFree", object, "freed twice");
    reapFree(&reap, object);
}
