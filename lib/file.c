#include "file.h"

#include <fcntl.h>
#include <unistd.h>

size_t file_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0) close(fd);
    size_t got = n > 0 ? (size_t)n : 0;
    text[got] = '\0';
    return got;
}

int file_keep(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 100); }
