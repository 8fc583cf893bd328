/* SPDX-License-Identifier: Apache-2.0 */
/* Behind libreap-trace: when the first reap has been destroyed, and before the recorder says so, another one
 * has its place, as another thread's would. The next reapDestroy frees that one's object. */
#define REAP_NO_INLINE
#include <dlfcn.h>
#include <reap.h>
#include <stdlib.h>

static void *late, *object;

void reapDestroy(void **reap)
{
    void (*next)(void **) = (void (*)(void **))dlsym(RTLD_NEXT, "reapDestroy");
    void *was = *reap;
    if (object) reapFree(&late, object);
    next(reap);
    for (int i = 0; !object; i++) {
        reapCreate(&late, NULL);
        if (late == was) object = reapMalloc(&late, 64);
        if (i == 1000) exit(4);
    }
}
