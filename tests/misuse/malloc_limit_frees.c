/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapOnLimit gives the object that is being resized to free(). */
#include "misuse.h"

static void *object;

static void free_it(void **reap, size_t size, void *arg)
{
    (void)reap, (void)size, (void)arg;
    free(opaque(object));
}

int main(void)
{
    void *reap = new_reap();
    object = reapMalloc(&reap, 600);
    reapSetLimit(&reap, 1000);
    reapOnLimit(&reap, free_it, NULL);
    expect("reapOnLimit", object, "not a live object");
    reapRealloc(&reap, object, 1100);
}
