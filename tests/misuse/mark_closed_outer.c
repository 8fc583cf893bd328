/* SPDX-License-Identifier: Apache-2.0 */
/* A mark is closed twice, while a younger one with the same place in the order is open. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reap_mark first, second;
    reapMark(&reap, &first);
    reapUnmark(&reap, &first);
    reapMark(&reap, &second);
    expect("reapUnmark", &first, "not an open mark of this reap");
    reapUnmark(&reap, &first);
}
