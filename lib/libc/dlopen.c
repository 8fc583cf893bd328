/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen.c: modules see the malloc that the program has.
 *
 * A module opened with RTLD_DEEPBIND looks into its own dependencies first, so finds libc's free, and
 * calls that with our blocks (PHP opens its extensions so).
 */
#include "base/base.h"

#include <dlfcn.h>

/* libc finds out who calls by the return address (for $ORIGIN, runpaths and namespaces), so the real one must
 * be jumped to, not called: whatever the flags of the build, this function is optimized (clang has musttail). */
#if defined(__clang__)
#define OPTIMIZED
#define JUMP __attribute__((musttail))
#else
#define OPTIMIZED __attribute__((optimize("O2")))
#define JUMP
#endif

OPTIMIZED void *dlopen(const char *file, int mode)
{
    static void *(*real)(const char *, int);
    if (real == NULL) real = dlsym(RTLD_NEXT, "dlopen");
    JUMP return real(file, mode & ~RTLD_DEEPBIND);
}
