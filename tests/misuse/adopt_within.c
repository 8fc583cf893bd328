/* SPDX-License-Identifier: Apache-2.0 */
/* A function of a reap that is being destroyed takes it to another parent. */
#include "misuse.h"

static void *reap;

static void adopt(void *arg)
{
    expect("reapAdopt", reap, "reap is being destroyed");
    reapAdopt(&reap, arg);
}

int main(void)
{
    void *other = new_reap(), *handle;
    handle = reap = new_reap();
    reapOnDestroy(&reap, adopt, &other);
    reapDestroy(&handle);
}
