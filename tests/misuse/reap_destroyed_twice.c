/* SPDX-License-Identifier: Apache-2.0 */
/* A reap is destroyed twice, through a copy of its handle. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *copy = reap;
    reapDestroy(&reap);
    expect("reapDestroy", copy, "not a live reap");
    reapDestroy(&copy);
}
