/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAPS = 1 << 16, TEXT = 1 << 24 /* bytes: vm.max_map_count mappings and more */ };

/* One reservation, of which a process uses what it needs. */
struct reading {
    size_t count, size;
    struct profile_map maps[MAPS];
    char text[TEXT];
};
static struct reading *reading;

static bool read_text(int fd)
{
    for (;;) {
        ssize_t n = read(fd, reading->text + reading->size, TEXT - 1 - reading->size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        reading->size += (size_t)n;
        if (reading->size == TEXT - 1) return true;
    }
}

static uint64_t hex(char **at)
{
    uint64_t number = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            number = number * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number * 16 + (uint64_t)(c - 'a' + 10);
        else
            return number;
    }
}

/* A line: begin-end perms offset device inode path. */
static void read_line(char *line)
{
    struct profile_map *map = &reading->maps[reading->count];
    map->begin = hex(&line);
    if (*line++ != '-') return;
    map->end = hex(&line);
    if (strlen(line) < 6) return;
    map->may_write = line[2] == 'w';
    map->may_execute = line[3] == 'x';
    line += 6;
    map->offset = hex(&line);
    char *device = strchr(line, ':'), *inode = device ? strchr(device, ' ') : NULL;
    map->inode = inode ? strtoull(inode, NULL, 10) : 0;
    char *path = strchr(line, '/'), *kind = strchr(line, '[');
    map->path = path && path[-1] == ' ' && strchr(line, ':') < path ? path : kind ? kind : "";
    reading->count++;
}

static void read_lines(void)
{
    char *line = reading->text, *end;
    for (; (end = strchr(line, '\n')) && reading->count < MAPS; line = end + 1) {
        *end = '\0';
        read_line(line);
    }
}

bool profile_maps_read(void)
{
    void *memory = mmap(NULL, sizeof *reading, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    reading = memory != MAP_FAILED ? memory : NULL;
    bool done = fd >= 0 && reading && read_text(fd);
    if (done) read_lines();
    if (fd >= 0) close(fd);
    if (!done) profile_maps_drop();
    return done;
}

void profile_maps_drop(void)
{
    if (reading) munmap(reading, sizeof *reading);
    reading = NULL;
}

const struct profile_map *profile_map_at(size_t i) { return i < reading->count ? &reading->maps[i] : NULL; }

const struct profile_map *profile_map_of(const void *address)
{
    size_t from = 0, to = reading->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (reading->maps[middle].end <= (uintptr_t)address)
            from = middle + 1;
        else
            to = middle;
    }
    return from < reading->count && reading->maps[from].begin <= (uintptr_t)address ? &reading->maps[from]
                                                                                    : NULL;
}
