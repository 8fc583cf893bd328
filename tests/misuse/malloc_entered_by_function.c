/* SPDX-License-Identifier: Apache-2.0 */
/* A function of a reap that is destroyed enters it, and does not leave. */
#include "misuse.h"

static void *reap;

static void enter(void *arg)
{
    (void)arg;
    reapEnter(&reap);
}

int main(void)
{
    reap = new_reap();
    reapOnDestroy(&reap, enter, NULL);
    expect("reapDestroy", reap, "reap is entered");
    reapDestroy(&reap);
}
