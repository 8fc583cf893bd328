/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h: calls of the kernel and of libc on the way of malloc.
 *
 * A preloaded library may wrap functions of libc. Such a wrapper may call malloc, as each does that finds
 * libc's function by dlsym. So malloc calls the kernel directly, by KERNEL. Only calls for memory, which
 * tools must see, go to libc: by LIBC, and from threads that hold no lock.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include "base/base.h"

#include <sys/syscall.h>

/* As syscall(): KERNEL(number, up to six arguments) returns -1 and sets errno for an error. It is no
 * cancellation point: a cancelled thread would end in it, within malloc, with the locks that it holds. */
long kernel_call(long number, long a, long b, long c, long d, long e, long f);
#define KERNEL(...) KERNEL_WITH(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define KERNEL_WITH(number, a, b, c, d, e, f, ...)                                                           \
    kernel_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Reads the first size - 1 bytes of a file, or all of it, into text, and terminates it. Returns the number of
 * bytes. It is 0, with errno, where the file cannot be read, and also where it is empty. */
size_t kernel_read_file(const char *path, char *text, size_t size);

/* True while this thread is in such a function of libc's: a malloc that comes meanwhile does not go to a
 * reap, which may be in the midst of a change. */
extern HIDDEN __thread bool kernel_in_libc __attribute__((tls_model("initial-exec")));

/* LIBC(name, arguments): the function of libc's, or, for a malloc within another such call, the kernel's. */
#define LIBC(name, ...)                                                                                      \
    __extension__({                                                                                          \
        bool nested_ = kernel_in_libc;                                                                       \
        kernel_in_libc = true;                                                                               \
        __typeof__(name(__VA_ARGS__)) result_ =                                                              \
            nested_ ? (__typeof__(result_))KERNEL(SYS_##name, __VA_ARGS__) : name(__VA_ARGS__);              \
        kernel_in_libc = nested_;                                                                            \
        result_;                                                                                             \
    })

#endif
