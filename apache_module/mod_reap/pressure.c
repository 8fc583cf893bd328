/* SPDX-License-Identifier: Apache-2.0 */
#include "pressure.h"

#include "board.h"
#include "gather.h"
#include "process.h"
#include "strike.h"

#include <fcntl.h>
#include <http_config.h>
#include <http_log.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

APLOG_USE_MODULE(reap);

static int file = -1;

/* Of the group at path, or the next one above it that is there: in a container without a namespace of its own
 * that is the root of the mount. */
static int open_events(const char *path)
{
    char name[PATH_MAX];
    size_t length = strlen(path);
    for (;;) {
        snprintf(name, sizeof name, "/sys/fs/cgroup%.*s/memory.events", (int)length, path);
        int found = open(name, O_RDONLY | O_CLOEXEC);
        if (found >= 0 || !length) return found;
        while (length && path[--length] != '/') continue;
    }
}

static apr_status_t end(void *data)
{
    (void)data;
    if (file >= 0) close(file);
    file = -1;
    return APR_SUCCESS;
}

/* Each line is "number:controllers:path", and that of version 2 "0::path". */
void pressure_begin(apr_pool_t *pool)
{
    char line[PATH_MAX];
    FILE *list = fopen("/proc/self/cgroup", "re");
    while (list && file < 0 && fgets(line, sizeof line, list))
        if (strncmp(line, "0::/", 4) == 0) file = open_events(strtok(line + 3, "\n"));
    if (list) fclose(list);
    apr_pool_cleanup_register(pool, NULL, end, apr_pool_cleanup_null);
}

/* Lines of a name and a count. */
static bool read_counts(struct board_pressure *counts)
{
    char text[512], *line, *rest = text;
    unsigned found = 0;
    ssize_t n = pread(file, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    while ((line = strsep(&rest, "\n")))
        found += sscanf(line, "high %" SCNu64, &counts->high) == 1 ||
                 sscanf(line, "max %" SCNu64, &counts->max) == 1 ||
                 sscanf(line, "oom_kill %" SCNu64, &counts->killed) == 1;
    return found == 3;
}

static pid_t largest_child(int64_t *resident)
{
    struct board_slot *slots;
    pid_t largest = 0;
    *resident = 0;
    for (size_t n = board_slots(&slots); n--; slots++) {
        pid_t pid = __atomic_load_n(&slots->pid, __ATOMIC_ACQUIRE);
        int64_t size = pid ? process_resident(pid) : 0;
        if (size <= *resident) continue;
        *resident = size;
        largest = pid;
    }
    return largest;
}

void pressure_look(const server_rec *server)
{
    struct board_pressure counts;
    int64_t resident;
    if (file < 0 || !read_counts(&counts) || !board_note_pressure(&counts)) return;
    pid_t child = largest_child(&resident);
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                 "the control group was at memory.high %" PRIu64 " times more, at memory.max %" PRIu64
                 " times, and the kernel killed %" PRIu64 " processes for it; child %ld has most, %" PRId64
                 " kB resident",
                 counts.high, counts.max, counts.killed, (long)child, resident / 1024);
    if (child == getpid())
        strike_tell(server, NULL);
    else if (child)
        gather_ask_to_tell(child);
}
