/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c: turns the heap profile on and off, and answers for it.
 *
 *     reap-ask PROCESS profile [on [BYTES] | off | pprof | flames | flames allocated | mallocs] (libreap-ask)
 *     REAP_PROFILE=FILE [REAP_PROFILE_BYTES=BYTES]     from the start; FILE is written at exit
 *
 * Off is as if this library were not there: the program's calls go where ld.so has sent them. What was
 * sampled stays to be asked for, and stands still.
 *
 * Threads: one at a time does any of this. A forked child goes on with what its parent had.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/profile_face.h"
#include "tools/common/standard_error.h"
#define REAP_OPTIONAL
#include "profile_own.h"
#include "profile_patch.h"
#include "profile_write.h"
#include "reap_ask.h"
#pragma weak reapAnswer

enum { PERIOD = 512 * 1024, PERIOD_MOST = 1 << 30, PATH = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_on, was_on;
static struct profile_times times;
static struct timespec since;
static char file[PATH]; /* to be written at exit, by the process that began */
static pid_t writer;

static int64_t ns_since(const struct timespec *start, clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)(now.tv_sec - start->tv_sec) * 1000000000 + (now.tv_nsec - start->tv_nsec);
}

/* --- on and off ------------------------------------------------------------------------------ */

/* fork takes all locks of the profile. What
 * other handlers allocate and free meanwhile, as libreap-ask's in the child, must not want them. */
static __thread bool busy_before_fork;
static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
    profile_patch_lock();
    profile_table_lock();
    busy_before_fork = profile_busy;
    profile_busy = true;
}

static void after_fork(void)
{
    profile_busy = busy_before_fork;
    profile_table_unlock();
    profile_patch_unlock();
    pthread_mutex_unlock(&mutex);
}

/* NULL, or what is wrong. */
static const char *prepare(void)
{
    static bool is_ready;
    if (is_ready) return NULL;
    if (!profile_table_make()) return "no memory for the profile";
    if (pthread_atfork(before_fork, after_fork, after_fork) != 0) return "no memory for the profile";
    is_ready = true;
    return NULL;
}

static const char *turn_on(size_t period)
{
    struct timespec epoch = {.tv_sec = 0};
    if (is_on) return "it is on already";
    const char *wrong = prepare();
    if (wrong) return wrong;
    profile_set_period(period);
    profile_table_start();
    times = (struct profile_times){.start_ns = ns_since(&epoch, CLOCK_REALTIME), .period = period};
    clock_gettime(CLOCK_MONOTONIC, &since);
    is_on = was_on = profile_patch(true);
    reap_profile_face_2.is_on = is_on;
    if (is_on) return NULL;
    profile_table_stop();
    return "/proc/self/maps cannot be read";
}

static const char *turn_off(void)
{
    if (!is_on) return "it is off already";
    if (!profile_patch(false)) return "/proc/self/maps cannot be read";
    reap_profile_face_2.is_on = false;
    profile_table_stop();
    times.lasts_ns = ns_since(&since, CLOCK_MONOTONIC);
    is_on = false;
    return NULL;
}

static void keep_time(void)
{
    if (is_on) times.lasts_ns = ns_since(&since, CLOCK_MONOTONIC);
}

/* --- answers --------------------------------------------------------------------------------- */

static void put_state(FILE *out)
{
    struct profile_figures figures = profile_table_figures();
    keep_time();
    if (!was_on) {
        fprintf(out, "profile: off; on [BYTES] turns it on\n");
        return;
    }
    fprintf(out, "profile: %s, %.1f s, a sample each %zu bytes: %ju samples, %u live, %u stacks, %ju lost\n",
            is_on ? "on" : "off", (double)times.lasts_ns / 1e9, times.period, (uintmax_t)figures.samples,
            figures.live, figures.stacks, (uintmax_t)figures.lost);
}

static const char *put_report(FILE *out, const char *what)
{
    if (!was_on) return "it was not on yet";
    if (is_on) profile_patch(true); /* objects that were loaded since */
    keep_time();
    const struct report *report = report_make(strcmp(what, "mallocs") != 0);
    if (!report) return "no memory for this answer";
    bool done = true;
    if (strcmp(what, "pprof") == 0)
        done = profile_write_pprof(report, times, out);
    else if (strcmp(what, "mallocs") == 0)
        profile_write_mallocs(report, out);
    else if (!*what)
        profile_write_names(report, out);
    else
        profile_write_flames(report, strcmp(what, "flames allocated") == 0, times.period, out);
    report_drop();
    return done ? NULL : "no memory for this answer";
}

/* Bytes of `on BYTES`; 0: they are none. */
static size_t read_period(const char *text)
{
    char *end;
    while (*text == ' ' || *text == '\t') text++;
    if (!*text) return PERIOD;
    if (*text < '0' || *text > '9') return 0;
    errno = 0;
    unsigned long long bytes = strtoull(text, &end, 10);
    return *end || errno != 0 || bytes > PERIOD_MOST ? 0 : (size_t)bytes;
}

static const char no_period[] = "the bytes between two samples are 1 to 1073741824";

static const char *do_what(const char *args, FILE *out)
{
    static const char *const reports[] = {"pprof", "flames", "flames allocated", "mallocs"};
    bool says_on = strncmp(args, "on", 2) == 0 && (!args[2] || args[2] == ' ' || args[2] == '\t');
    size_t period = says_on ? read_period(args + 2) : 0;
    if (says_on && period == 0) return no_period;
    const char *wrong = says_on ? turn_on(period) : strcmp(args, "off") == 0 ? turn_off() : "";
    if (!wrong) put_state(out);
    if (!wrong || *wrong) return wrong;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        if (strcmp(args, reports[i]) == 0) return put_report(out, args);
    if (*args) return "it takes on [BYTES], off, pprof, flames, flames allocated, mallocs, or nothing";
    put_state(out);
    return was_on ? put_report(out, "") : NULL;
}

static void answer(FILE *out, const char *args, void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    bool was_busy = profile_busy;
    profile_busy = true;
    const char *wrong = do_what(args, out);
    profile_busy = was_busy;
    pthread_mutex_unlock(&mutex);
    if (wrong) fprintf(out, "reap: profile: %s\n", wrong);
}

static void put_mallocs(FILE *out)
{
    pthread_mutex_lock(&mutex);
    bool was_busy = profile_busy;
    profile_busy = true;
    if (is_on) put_report(out, "mallocs");
    profile_busy = was_busy;
    pthread_mutex_unlock(&mutex);
}

/* Whoever calls may hold a lock that the holder of this one wants, as ld.so's. */
static void largest_stacks(void **reap, void (*fn)(const char *line, const void *arg), const void *arg)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (pthread_mutex_timedlock(&mutex, &until) != 0) return;
    bool was_busy = profile_busy;
    profile_busy = true;
    if (is_on) profile_largest_stacks(reap, fn, arg);
    profile_busy = was_busy;
    pthread_mutex_unlock(&mutex);
}

struct profile_face reap_profile_face_2 = {.put_mallocs = put_mallocs,
                                           .largest_stacks = largest_stacks,
                                           .count_thread = profile_table_count,
                                           .answer = answer};

/* --- from the start -------------------------------------------------------------------------- */

static void say(const char *what, const char *why)
{
    if (!standard_error_is_there()) return;
    fprintf(stderr, "reap: REAP_PROFILE=%.200s: %s%s%s\n", file, what, *why ? ": " : "", why);
}

/* The report that the file's name asks for. */
static const char *wanted(void)
{
    const char *dot = strrchr(file, '.');
    if (dot && strcmp(dot, ".txt") == 0) return "";
    return dot && strcmp(dot, ".svg") == 0 ? "flames" : "pprof";
}

static void write_file(void)
{
    FILE *out = fopen(file, "we");
    if (!out) {
        say("it cannot be written", strerror(errno));
        return;
    }
    const char *wrong = put_report(out, wanted());
    bool is_written = fflush(out) == 0;
    int error = errno;
    fclose(out);
    if (wrong || !is_written) say(wrong ? wrong : "it cannot be written", wrong ? "" : strerror(error));
}

__attribute__((constructor)) static void start(void)
{
    const char *path = secure_getenv("REAP_PROFILE");
    if (reapAnswer) reapAnswer("profile", answer, NULL);
    if (!path || !*path || strlen(path) >= sizeof file) return;
    memcpy(file, path, strlen(path) + 1);
    writer = getpid();
    profile_busy = true;
    const char *bytes = secure_getenv("REAP_PROFILE_BYTES");
    size_t period = read_period(bytes ? bytes : "");
    const char *wrong = period == 0 ? no_period : turn_on(period);
    profile_busy = false;
    if (wrong) say(wrong, "");
}

__attribute__((destructor)) static void end(void)
{
    if (!file[0] || getpid() != writer || !was_on) return;
    pthread_mutex_lock(&mutex);
    profile_busy = true;
    write_file();
    profile_busy = false;
    pthread_mutex_unlock(&mutex);
}
