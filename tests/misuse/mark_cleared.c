/* SPDX-License-Identifier: Apache-2.0 */
/* A reap goes back to a mark from before it was cleared. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reap_mark mark;
    reapMark(&reap, &mark);
    reapFreeAll(&reap);
    expect("reapRewind", &mark, "not an open mark of this reap");
    reapRewind(&reap, &mark);
}
