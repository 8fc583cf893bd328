/* SPDX-License-Identifier: Apache-2.0 */
/* The handle that reapDestroy left behind is used. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    reapDestroy(&reap);
    expect("reapMalloc", NULL, "not a live reap");
    return reapMalloc(&reap, 100) == NULL;
}
