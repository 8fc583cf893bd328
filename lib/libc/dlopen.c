/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen.c: modules see the malloc that the program has.
 *
 * A module opened with RTLD_DEEPBIND looks into its own dependencies first, so finds libc's free, and
 * calls that with our blocks (PHP opens its extensions so).
 */
#include "base/base.h"

#include <dlfcn.h>

/* libc finds out who calls by the return address (for $ORIGIN, runpaths and namespaces), so the real one must
 * be jumped to, not called, whatever the flags of the build. */
#ifdef __clang__
#define BY_A_JUMP
#define JUMP_TO __attribute__((musttail)) return
#else
#define BY_A_JUMP __attribute__((optimize("O2")))
#define JUMP_TO return
#endif
BY_A_JUMP void *dlopen(const char *file, int mode)
{
    static void *(*real)(const char *, int);
    if (real == NULL) real = dlsym(RTLD_NEXT, "dlopen");
    JUMP_TO real(file, mode & ~RTLD_DEEPBIND);
}
