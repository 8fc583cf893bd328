/* SPDX-License-Identifier: Apache-2.0 */
/* A new reap is to be put where a live one is: the `&` was forgotten. */
#include "misuse.h"

int main(void)
{
    void *reap = new_reap();
    expect("reapCreate", reap, "a reap, where the address of a handle is to be set");
    reapCreate(reap, NULL);
}
