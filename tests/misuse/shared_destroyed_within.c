/* SPDX-License-Identifier: Apache-2.0 */
/* A function of a shared reap that is being cleared destroys it. */
#include "misuse.h"

static void destroy(void *reap)
{
    expect("reapDestroy", reap, "reap is being destroyed");
    reapDestroy(&reap);
}

int main(void)
{
    void *reap = new_shared_reap();
    reapOnDestroy(&reap, destroy, reap);
    reapFreeAll(&reap);
}
