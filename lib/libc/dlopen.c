/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen.c: modules use the malloc of the program.
 *
 * A module opened with RTLD_DEEPBIND looks into its own dependencies first. So it finds libc's free, and
 * calls it with this library's blocks (PHP opens its extensions in this way).
 */
#include "base/base.h"

#include <dlfcn.h>

/* libc finds its caller by the return address (for $ORIGIN, runpaths and namespaces). So the code must jump
 * to the real function, not call it, whatever the flags of the build. */
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
