/* SPDX-License-Identifier: Apache-2.0 */
/* reap_trace.c: a line in a file for each reap that begins, is cleared, meets a limit, or ends. */
#include "reap/reap_trace.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/named_file.h"
#include "base/options.h"
#include "base/report.h"
#include "base/small_file.h"
#include "reap/reap_shared.h"
#include "tools/common/own_file.h"

bool reap_trace_on;
static struct own_file file = NO_OWN_FILE;
static uint64_t start_us;

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void reap_trace_start(void)
{
    char path[PATH_MAX];
    if (!options.trace) return;
    size_t size = strcspn(options.trace, ",");
    bool fits = size < sizeof path;
    if (!fits) size = sizeof path - 1;
    memcpy(path, options.trace, size);
    path[size] = '\0';
    const char *why = strerrordesc_np(ENAMETOOLONG);
    int fd = fits ? named_file_open(path, &why) : -1;
    if (fd >= 0 && !own_file_adopt(&file, fd)) why = strerrordesc_np(errno);
    if (!own_file_is_open(&file)) {
        report_line("REAP_OPTIONS: trace=%.200s cannot be opened: %s", path, why);
        return;
    }
    start_us = now_us();
    reap_trace_on = true;
}

/* Of threads that come here at once, one says so. */
static COLD void end(const char *why)
{
    if (__atomic_exchange_n(&reap_trace_on, false, __ATOMIC_RELAXED))
        report_line("REAP_OPTIONS: trace: %s, so the trace ends here", why);
}

static void line(const char *event, const struct reap *reap, const char *rest)
{
    char text[512];
    int saved = errno;
    const char *name = reap_name_text(reap);
    size_t n = report_format(text, sizeof text - 1, "%u %llu %s %p%s%.100s%s", (unsigned)getpid(),
                             (unsigned long long)(now_us() - start_us), event,
                             reap_handle((struct reap *)(uintptr_t)reap), *name ? " " : "", name, rest);
    text[n++] = '\n';
    if (!own_file_is_open(&file))
        end("the program has closed the file");
    else if (!small_file_write_all(file.fd, text, n))
        end(strerrordesc_np(errno));
    errno = saved;
}

void reap_trace_create(struct reap *reap)
{
    char rest[64] = "";
    reap_records(reap)->made = now_us();
    if (reap->parent) report_format(rest, sizeof rest, " below %p", reap_handle(reap->parent));
    line("create", reap, rest);
}

void reap_trace_held(const struct reap *reap, const struct reap_stats *held, bool ends)
{
    char rest[256];
    size_t n = report_format(rest, sizeof rest, ": %zu objects, %zu bytes, %zu chunks, %zu held",
                             held->live_objects, held->live_bytes, held->chunks, held->chunk_bytes);
    unsigned long long lived = ends ? now_us() - reap_records(reap)->made : 0;
    if (ends)
        report_format(rest + n, sizeof rest - n, ", %zu at most, after %llu", held->peak_chunk_bytes, lived);
    line(ends ? "destroy" : "clear", reap, rest);
}

void reap_trace_limit(const struct reap *reap, size_t asked)
{
    char rest[128];
    report_format(rest, sizeof rest, ": %zu more, of %zu", asked, reap_share(reap)->bytes);
    line("limit", reap, rest);
}
