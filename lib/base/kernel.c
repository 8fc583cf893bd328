/* SPDX-License-Identifier: Apache-2.0 */
#include "base/kernel.h"

#include <fcntl.h>
#include <unistd.h>

__thread bool kernel_in_libc;

#if defined(__x86_64__) || defined(__aarch64__)

long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result = number;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, result __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(result)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
#endif
    if ((unsigned long)result <= -4096ul) return result;
    errno = (int)-result;
    return -1;
}

#else

long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
    return syscall(number, a, b, c, d, e, f);
}

#endif

size_t kernel_read_file(const char *path, char *text, size_t size)
{
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? KERNEL(SYS_read, fd, text, size - 1) : 0;
    if (fd >= 0) KERNEL(SYS_close, fd);
    size_t got = n > 0 ? (size_t)n : 0;
    text[got] = '\0';
    return got;
}
