/* SPDX-License-Identifier: Apache-2.0 */
/* A child is made in a destroyed reap. */
#include "misuse.h"

int main(void)
{
    void *parent = new_reap(), *copy = parent, *child;
    reapDestroy(&parent);
    expect("reapCreate", copy, "not a live reap");
    reapCreate(&child, &copy);
}
