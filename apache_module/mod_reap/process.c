/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

bool process_is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

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

long process_thread_cpu(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}
