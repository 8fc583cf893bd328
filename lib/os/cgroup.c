/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include "base/parse.h"
#include "base/report.h"
#include "base/small_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { PATH_SIZE = 1024, LIST_SIZE = 4096 };

/* Reads a number at *text, and moves *text behind it. SIZE_MAX for "max", "-1" and numbers that do not
 * fit. */
static size_t number(const char **text)
{
    size_t n;
    return parse_number(text, *text + strlen(*text), SIZE_MAX, &n) ? n : SIZE_MAX;
}

/* --- one group ------------------------------------------------------------------------------- */

static bool read_file(const char *directory, const char *name, char *text, size_t size)
{
    char path[PATH_SIZE];
    report_format(path, sizeof path, "%s/%s", directory, name);
    return small_file_read(path, text, size) != 0;
}

static void lower_memory(const char *directory, const char *name, struct cgroup *group)
{
    char text[64];
    const char *at = text;
    if (!read_file(directory, name, text, sizeof text)) return;
    size_t bytes = number(&at);
    if (bytes < group->memory) group->memory = bytes;
}

static void lower_cpus(size_t quota, size_t period, struct cgroup *group)
{
    if (quota == SIZE_MAX || period == SIZE_MAX || period == 0) return;
    size_t cpus = quota / period + (quota % period != 0);
    if (cpus == 0) cpus = 1;
    if (cpus < group->cpus) group->cpus = (unsigned)cpus;
}

static void lower_by_v2(const char *directory, struct cgroup *group)
{
    char text[64];
    const char *at = text;
    lower_memory(directory, "memory.max", group);
    if (!read_file(directory, "cpu.max", text, sizeof text)) return;
    size_t quota = number(&at);
    while (*at == ' ') at++;
    lower_cpus(quota, number(&at), group);
}

static void lower_by_v1_memory(const char *directory, struct cgroup *group)
{
    lower_memory(directory, "memory.limit_in_bytes", group);
}

static void lower_by_v1_cpu(const char *directory, struct cgroup *group)
{
    char quota[64], period[64];
    const char *q = quota, *p = period;
    if (read_file(directory, "cpu.cfs_quota_us", quota, sizeof quota) &&
        read_file(directory, "cpu.cfs_period_us", period, sizeof period))
        lower_cpus(number(&q), number(&p), group);
}

/* --- all groups of the process ---------------------------------------------------------------- */

/* Calls `lower` for the group at path, which has `size` bytes, and for each directory above it up to the
 * mount. */
static void climb(const char *mount, const char *path, size_t size,
                  void (*lower)(const char *directory, struct cgroup *group), struct cgroup *group)
{
    char directory[PATH_SIZE];
    size_t root = report_format(directory, sizeof directory, "%s", mount);
    if (size >= sizeof directory - root) return;
    memcpy(directory + root, path, size);
    for (size_t end = root + size;;) {
        while (end > root && directory[end - 1] == '/') end--;
        directory[end] = '\0';
        lower(directory, group);
        if (end == root) return;
        while (end > root && directory[end - 1] != '/') end--;
    }
}

/* Is the word in a list with commas? */
static bool has_word(const char *list, size_t size, const char *word)
{
    size_t length = strlen(word);
    while (size >= length) {
        if (strncmp(list, word, length) == 0 && (size == length || list[length] == ',')) return true;
        const char *comma = memchr(list, ',', size);
        if (comma == NULL) return false;
        size -= (size_t)(comma + 1 - list);
        list = comma + 1;
    }
    return false;
}

/* Reads a line of /proc/self/cgroup, "number:controllers:path". A line of version 2 has no controllers. */
static void read_line(const char *root, const char *line, size_t size, struct cgroup *group)
{
    const char *list = memchr(line, ':', size), *end = line + size;
    const char *path = list != NULL ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
    if (path == NULL) return;
    char mount[PATH_SIZE];
    size_t words = (size_t)(path++ - ++list);
    if (words == 0) {
        report_format(mount, sizeof mount, "%s/sys/fs/cgroup", root);
        climb(mount, path, (size_t)(end - path), lower_by_v2, group);
    }
    if (has_word(list, words, "memory")) {
        report_format(mount, sizeof mount, "%s/sys/fs/cgroup/memory", root);
        climb(mount, path, (size_t)(end - path), lower_by_v1_memory, group);
    }
    if (has_word(list, words, "cpu")) {
        report_format(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
        climb(mount, path, (size_t)(end - path), lower_by_v1_cpu, group);
    }
}

void cgroup_read(const char *root, struct cgroup *group)
{
    int saved = errno;
    char path[PATH_SIZE], text[LIST_SIZE];
    *group = (struct cgroup){.memory = SIZE_MAX, .cpus = UINT_MAX};
    report_format(path, sizeof path, "%s/proc/self/cgroup", root);
    if (small_file_read(path, text, sizeof text) != 0) {
        for (const char *line = text; *line != '\0';) {
            size_t size = strcspn(line, "\n");
            read_line(root, line, size, group);
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
