/* SPDX-License-Identifier: Apache-2.0 */
/* A reap goes back to a mark that is closed. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reap_mark outer, inner;
    reapMark(&reap, &outer);
    reapMark(&reap, &inner);
    reapUnmark(&reap, &inner);
    expect("reapRewind", &inner, "not an open mark of this reap");
    reapRewind(&reap, &inner);
}
