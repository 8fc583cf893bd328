/* SPDX-License-Identifier: Apache-2.0 */
/* resident.h: what the kernel says that this process holds. Nothing is allocated. */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Bytes of addresses that this process has, and of memory that it has at them; both 0: the kernel does not
 * say. */
struct process_bytes {
    size_t addresses, resident;
};

static inline struct process_bytes held_by_process(void)
{
    size_t addresses = 0, pages = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    if (fd < 0) return (struct process_bytes){0, 0};
    if (read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%zu %zu", &addresses, &pages) != 2)
        addresses = pages = 0;
    close(fd);
    return (struct process_bytes){addresses * page, pages * page};
}

static inline size_t resident(void) { return held_by_process().resident; }

#endif
