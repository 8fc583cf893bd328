/* SPDX-License-Identifier: Apache-2.0 */
/* A reap is cleared with an entered one below it. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap(), *child;
    reapCreate(&child, &reap);
    reapEnter(&child);
    expect("reapFreeAll", child, "reap is entered");
    reapFreeAll(&reap);
}
