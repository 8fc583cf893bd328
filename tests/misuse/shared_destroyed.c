/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the handle of a shared reap that was destroyed is used. */
#include "misuse.h"

int main(void)
{
    void *reap = new_shared_reap(), *copy = reap;
    reapDestroy(&reap);
    expect("reapMalloc", copy, "not a live reap");
    return reapMalloc(&copy, 100) == NULL;
}
