/* SPDX-License-Identifier: Apache-2.0 */
/* A reap goes back to a mark of another reap. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *other = new_reap();
    reap_mark mark, own;
    reapMark(&other, &mark);
    reapMark(&reap, &own);
    expect("reapRewind", &mark, "not an open mark of this reap");
    reapRewind(&reap, &mark);
}
