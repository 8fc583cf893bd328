/* SPDX-License-Identifier: Apache-2.0 */
/* resident.h: what the kernel says that this process holds. Nothing is allocated. */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Bytes of resident memory; 0: the kernel does not say. */
static inline size_t resident(void)
{
    size_t total = 0, pages = 0;
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    if (fd < 0) return 0;
    if (read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%zu %zu", &total, &pages) != 2) pages = 0;
    close(fd);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

#endif
