/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

bool process_is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

static int open_of(pid_t pid, const char *name)
{
    char path[64];
    if (pid == getpid()) /* by this name a process may read its own, whoever it has become */
        strcpy(stpcpy(path, "/proc/self/"), name);
    else
        snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int64_t process_resident(pid_t pid)
{
    char text[128] = "";
    int file = open_of(pid, "statm");
    if (file < 0) return -1;
    ssize_t n = read(file, text, sizeof text - 1);
    const char *pages = n > 0 ? strchr(text, ' ') : NULL; /* the second field */
    int64_t number = 0;
    close(file);
    while (pages && *++pages >= '0' && *pages <= '9') number = 10 * number + (*pages - '0');
    return pages ? number * getpagesize() : -1;
}

int64_t process_own_peak(void)
{
    struct rusage usage = {.ru_maxrss = 0};
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
}

int64_t process_proportional(pid_t pid)
{
    char line[256];
    long kilobytes = -1;
    int descriptor = open_of(pid, "smaps_rollup");
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
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
