/* SPDX-License-Identifier: Apache-2.0 */
#include "base/small_file.h"

#include "base/kernel.h"

#include <fcntl.h>
#include <unistd.h>

int small_file_open(const char *path, int flags)
{
    return (int)KERNEL(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0666);
}

void small_file_close(int fd)
{
    int saved = errno;
    KERNEL(SYS_close, fd);
    errno = saved;
}

bool small_file_write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = KERNEL(SYS_write, fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

size_t small_file_read(const char *path, char *text, size_t size)
{
    int fd = small_file_open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? KERNEL(SYS_read, fd, text, size - 1) : 0;
    if (fd >= 0) small_file_close(fd);
    size_t got = n > 0 ? (size_t)n : 0;
    text[got] = '\0';
    return got;
}
