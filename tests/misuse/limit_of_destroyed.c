/* SPDX-License-Identifier: Apache-2.0 */
/* A destroyed reap is given a limit. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *copy = reap;
    reapDestroy(&reap);
    expect("reapSetLimit", copy, "not a live reap");
    reapSetLimit(&copy, 1000);
}
