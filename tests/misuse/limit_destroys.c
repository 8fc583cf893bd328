/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapOnLimit destroys the reap that it was called for. */
#include "misuse.h"

static void destroy(void **reap, size_t size, void *arg)
{
    (void)size, (void)arg;
    reapDestroy(reap);
}

int main(void)
{
    void *reap = new_reap();
    reapSetLimit(&reap, 1000);
    reapOnLimit(&reap, destroy, NULL);
    expect("reapOnLimit", reap, "not a live reap");
    reapMalloc(&reap, 1100);
}
