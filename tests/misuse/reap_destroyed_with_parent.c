/* SPDX-License-Identifier: Apache-2.0 */
/* A reap is used after its parent was destroyed. */
#include "misuse.h"

int main(void)
{
    void *parent = new_reap(), *child;
    reapCreate(&child, &parent);
    reapDestroy(&parent);
    expect("reapPrintf", child, "not a live reap");
    return reapPrintf(&child, "text") == NULL;
}
