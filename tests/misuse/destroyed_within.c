/* SPDX-License-Identifier: Apache-2.0 */
/* A function that runs when a reap ends destroys that reap. */
#include "misuse.h"

static void destroy(void *reap) { reapDestroy(&reap); }

int main(void)
{
    void *reap = new_reap();
    reapOnDestroy(&reap, destroy, reap);
    expect("reapDestroy", reap, "reap is being destroyed");
    reapDestroy(&reap);
}
