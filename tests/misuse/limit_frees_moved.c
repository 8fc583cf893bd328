/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapOnLimit frees the object that is being moved, out of a reap that has no limit, and gets
 * its memory again. */
#include "misuse.h"

static void free_and_take(void **reap, size_t size, void *arg)
{
    void **from = arg, *object = opaque(from[1]);
    (void)reap, (void)size;
    reapFree(&from[0], object);
    if (reapMalloc(&from[0], 600) != object) abort();
}

int main(void)
{
    void *reap = new_reap(), *from[2] = {new_reap()};
    from[1] = reapMalloc(&from[0], 600);
    reapMalloc(&from[0], 600);
    reapSetLimit(&reap, 500);
    reapOnLimit(&reap, free_and_take, from);
    expect("reapOnLimit", from[1], "not a live object");
    reapMove(from[1], &from[0], &reap);
}
