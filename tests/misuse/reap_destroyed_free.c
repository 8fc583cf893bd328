/* SPDX-License-Identifier: Apache-2.0 */
/* An object is freed in a destroyed reap. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *copy = reap, *object = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapDestroy(&reap);
    expect("reapFree", copy, "not a live reap");
    reapFree(&copy, object);
}
