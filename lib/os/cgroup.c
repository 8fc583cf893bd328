/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include "base/kernel.h"
#include "base/parse.h"
#include "base/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { PATH_SIZE = 1024, LIST_SIZE = 4096 };

/* Reads a number at *text, and moves *text behind it. SIZE_MAX for "max", "-1" and what does not fit. */
static size_t number(const char **text)
{
    size_t n;
    return parse_number(text, *text + strlen(*text), SIZE_MAX, &n) ? n : SIZE_MAX;
}

enum { VALUE_SIZE = 64 };
static bool read_value(const char *directory, const char *name, char text[VALUE_SIZE])
{
    char path[PATH_SIZE];
    report_format(path, sizeof path, "%s/%s", directory, name);
    return kernel_read_file(path, text, VALUE_SIZE) != 0;
}

static void lower_memory(const char *directory, const char *name, struct cgroup *group)
{
    char text[VALUE_SIZE];
    const char *at = text;
    size_t bytes = read_value(directory, name, text) ? number(&at) : SIZE_MAX;
    if (bytes < group->memory) group->memory = bytes;
}

/* Lowers the limits to those of one directory. */
static void lower_limit(const char *directory, struct cgroup *group)
{
    char text[VALUE_SIZE];
    const char *at = text;
    lower_memory(directory, "memory.max", group);
    lower_memory(directory, "memory.high", group);
    if (!read_value(directory, "cpu.max", text)) return;
    size_t quota = number(&at);
    while (*at == ' ') at++;
    size_t period = number(&at);
    if (quota == SIZE_MAX || period == SIZE_MAX || period == 0) return;
    size_t cpus = quota / period + (quota % period != 0 || quota == 0);
    if (cpus < group->cpus) group->cpus = (unsigned)cpus;
}

/* Lowers the limits to those of the group at path, of `size` bytes, and of the directories above it. */
static void climb(const char *root, const char *path, size_t size, struct cgroup *group)
{
    char directory[PATH_SIZE];
    size_t mount = report_format(directory, sizeof directory, "%s/sys/fs/cgroup", root);
    if (size >= sizeof directory - mount) return;
    memcpy(directory + mount, path, size);
    for (size_t end = mount + size;;) {
        while (end > mount && directory[end - 1] == '/') end--;
        directory[end] = '\0';
        lower_limit(directory, group);
        if (end == mount) return;
        while (end > mount && directory[end - 1] != '/') end--;
    }
}

/* Each line of /proc/self/cgroup is "number:controllers:path". The line of version 2 is "0::path". */
void cgroup_read(const char *root, struct cgroup *group)
{
    int saved = errno;
    char path[PATH_SIZE], text[LIST_SIZE];
    *group = (struct cgroup){.memory = SIZE_MAX, .cpus = UINT_MAX};
    report_format(path, sizeof path, "%s/proc/self/cgroup", root);
    if (kernel_read_file(path, text, sizeof text) != 0) {
        for (const char *line = text; *line != '\0';) {
            size_t size = strcspn(line, "\n");
            if (strncmp(line, "0::", 3) == 0) climb(root, line + 3, size - 3, group);
            line += size + (line[size] == '\n');
        }
    }
    errno = saved;
}

struct cgroup cgroup_mine(void)
{
    enum { UNKNOWN, KEPT, KNOWN };
    static struct cgroup mine;
    static _Atomic int state;
    if (atomic_load_explicit(&state, memory_order_acquire) == KNOWN) return mine;
    struct cgroup group;
    cgroup_read("", &group);
    int unknown = UNKNOWN; /* if several threads come here at once, one of them keeps its result */
    if (atomic_compare_exchange_strong(&state, &unknown, KEPT)) {
        mine = group;
        atomic_store_explicit(&state, KNOWN, memory_order_release);
    }
    return group;
}
