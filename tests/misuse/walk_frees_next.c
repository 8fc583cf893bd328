/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapWalk frees another object than it is given. */
#include "misuse.h"

static void *objects[3], *reap;

static int meet(void *object, size_t size, void *n)
{
    (void)size;
    objects[(*(int *)n)++] = object;
    return 0;
}

static int free_next(void *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (object != objects[0]) return 0;
    reapFree(&reap, objects[1]);
    return 0;
}

int main(void)
{
    int n = 0;
    reap = new_reap();
    for (int i = 0; i < 3; i++) reapMalloc(&reap, 100);
    reapWalk(&reap, meet, &n);
    expect("reapWalk", objects[1], "not a live object");
    reapWalk(&reap, free_next, NULL);
}
