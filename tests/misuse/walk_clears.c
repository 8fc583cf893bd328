/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapWalk clears the reap. */
#include "misuse.h"

static void *reap, *met[2];

static int meet(void *object, size_t size, void *n)
{
    (void)size;
    met[(*(int *)n)++] = object;
    return 0;
}

static int clear(void *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (object == met[0]) reapFreeAll(&reap);
    return 0;
}

int main(void)
{
    int n = 0;
    reap = new_reap();
    for (int i = 0; i < 2; i++) reapMalloc(&reap, 100);
    reapWalk(&reap, meet, &n);
    expect("reapWalk", met[1], "not a live object");
    reapWalk(&reap, clear, NULL);
}
