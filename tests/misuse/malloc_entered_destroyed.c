/* SPDX-License-Identifier: Apache-2.0 */
/* A reap that is entered is destroyed. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reapEnter(&reap);
    expect("reapDestroy", reap, "reap is entered");
    reapDestroy(&reap);
}
