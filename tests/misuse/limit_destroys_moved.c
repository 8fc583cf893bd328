/* SPDX-License-Identifier: Apache-2.0 */
/* A function of reapOnLimit destroys the reap that an object is being moved from, and makes another in its
 * place. */
#include "misuse.h"

static void destroy(void **reap, size_t size, void *arg)
{
    void **from = arg;
    (void)reap, (void)size;
    reapDestroy(&from[0]);
    reapCreate(&from[0], NULL);
}

int main(void)
{
    void *reap = new_reap(), *from = new_reap(), *object = reapMalloc(&from, 600);
    reapSetLimit(&reap, 500);
    reapOnLimit(&reap, destroy, &from);
    expect("reapOnLimit", from, "not a live reap");
    reapMove(object, &from, &reap);
}
