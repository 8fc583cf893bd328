/* SPDX-License-Identifier: Apache-2.0 */
/* A reap is destroyed twice, each time without the `&`. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reapDestroy(reap);
    expect("reapDestroy", reap, "not a live reap");
    reapDestroy(reap);
}
