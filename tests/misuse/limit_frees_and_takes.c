/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapOnLimit frees the object that is being resized, and gets its memory again. */
#include "misuse.h"

static void *object;

static void free_and_take(void **reap, size_t size, void *arg)
{
    (void)size, (void)arg;
    reapFree(reap, object);
    if (reapMalloc(reap, 600) != object) abort();
}

int main(void)
{
    void *reap = new_reap();
    object = reapMalloc(&reap, 600);
    reapSetLimit(&reap, 1000);
    reapOnLimit(&reap, free_and_take, NULL);
    expect("reapOnLimit", object, "not a live object");
    reapRealloc(&reap, object, 1100);
}
