/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapWalk clears the reap. */
#include "misuse.h"

static void *reap, *last;

static int clear(void *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (object != last) reapFreeAll(&reap);
    return 0;
}

int main(void)
{
    reap = new_reap();
    reapMalloc(&reap, 100);
    last = reapMalloc(&reap, 100);
    expect("reapWalk", last, "not a live object");
    reapWalk(&reap, clear, NULL);
}
