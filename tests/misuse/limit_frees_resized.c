/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapOnLimit frees the very object that is being resized. */
#include "misuse.h"

static void clear(void **reap, size_t size, void *arg)
{
    (void)size, (void)arg;
    reapFreeAll(reap);
}

int main(void)
{
    void *reap = new_reap(), *object = reapMalloc(&reap, 600);
    reapSetLimit(&reap, 1000);
    reapOnLimit(&reap, clear, NULL);
    expect("reapOnLimit", object, "not a live object");
    reapRealloc(&reap, object, 1100);
}
