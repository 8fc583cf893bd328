/* SPDX-License-Identifier: Apache-2.0 */
/* More reaps are left than were entered. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reapEnter(&reap);
    reapLeave();
    expect("reapLeave", NULL, "no reap is entered");
    reapLeave();
}
