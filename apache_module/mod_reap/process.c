/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <stdio.h>
#include <unistd.h>

static FILE *open_of(pid_t pid, const char *name)
{
    char path[64];
    if (pid == getpid()) /* by this name a process may read its own, whoever it has become */
        snprintf(path, sizeof path, "/proc/self/%s", name);
    else
        snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    return fopen(path, "re");
}

int64_t process_resident(pid_t pid)
{
    long total, pages = -1;
    FILE *file = open_of(pid, "statm");
    if (!file) return -1;
    if (fscanf(file, "%ld %ld", &total, &pages) != 2) pages = -1;
    fclose(file);
    return pages < 0 ? -1 : (int64_t)pages * sysconf(_SC_PAGESIZE);
}

int64_t process_proportional(pid_t pid)
{
    char line[256];
    long kilobytes = -1;
    FILE *file = open_of(pid, "smaps_rollup");
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %ld", &kilobytes) != 1) kilobytes = -1;
    if (file) fclose(file);
    return kilobytes < 0 ? -1 : (int64_t)kilobytes * 1024;
}
