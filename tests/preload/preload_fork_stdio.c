/* SPDX-License-Identifier: Apache-2.0 */
/* fork beside stdio. libc's fork takes the lock of the list of streams. fflush(NULL) holds that lock and
 * waits for a stream's lock, and getline resizes its line within the stream's lock. So a fork that takes
 * malloc's locks before the list's waits for ever. First in this order, each time; then by chance. */
#include "support/expect.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { SECONDS = 60, LINE = 300000, CHANCE_MS = 400 };

static FILE *stream; /* of one long line */

static void rewind_line(void) { fseek(stream, 0, SEEK_SET); }

static void make_stream(void)
{
    static char line[LINE];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    int fd = memfd_create("line", 0);
    EXPECT(fd >= 0 && write(fd, line, sizeof line) == sizeof line);
    stream = fdopen(fd, "r");
    EXPECT(stream);
    if (!stream) exit(expect_status());
    rewind_line();
}

static void read_line(void)
{
    char *line = NULL;
    size_t size = 0;
    EXPECT(getline(&line, &size, stream) == LINE);
    free(line);
}

/* Takes the list's lock, in a thread that has not forked. */
static void *open_and_close(void *unused)
{
    FILE *other = fopen("/dev/null", "w");
    EXPECT(other && fclose(other) == 0);
    return unused;
}

static void use_list_elsewhere(void)
{
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, open_and_close, NULL) == 0);
    pthread_join(id, NULL);
}

/* A child uses streams, in threads too, and forks again. */
static void child(void)
{
    int status = 0, generation = 0;
    pid_t pid = 0;
    for (; pid == 0 && generation < 3; generation++) {
        alarm(SECONDS);
        rewind_line();
        read_line();
        fflush(NULL);
        if (generation > 0) use_list_elsewhere();
        pid = fork();
    }
    if (pid > 0) EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    use_list_elsewhere();
    exit(expect_status());
}

static void fork_once(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) child();
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static atomic_int step; /* 1: flush; 2: fork */
static atomic_int flusher, forker;

static void *flush_then(void *unused)
{
    flusher = (int)syscall(SYS_gettid);
    while (step < 1) sched_yield();
    fflush(NULL);
    return unused;
}

static void *fork_then(void *unused)
{
    forker = (int)syscall(SYS_gettid);
    while (step < 2) sched_yield();
    fork_once();
    use_list_elsewhere();
    return unused;
}

/* Waits until a thread sleeps in futex, by calls that allocate nothing. */
static void wait_until_asleep(const atomic_int *thread)
{
    char name[64], text[32] = "", futex[16];
    while (*thread == 0) sched_yield();
    snprintf(name, sizeof name, "/proc/self/task/%d/syscall", *thread);
    int length = snprintf(futex, sizeof futex, "%d ", SYS_futex);
    do {
        sched_yield();
        int fd = open(name, O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0) close(fd);
        if (n < 0) { /* the kernel does not tell: a while is enough, as a rule */
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
            return;
        }
    } while (strncmp(text, futex, (size_t)length) != 0);
}

static void test_in_order(void)
{
    pthread_t flush, fork_;
    step = 0;
    flusher = forker = 0;
    EXPECT(pthread_create(&flush, NULL, flush_then, NULL) == 0);
    EXPECT(pthread_create(&fork_, NULL, fork_then, NULL) == 0);
    flockfile(stream);
    step = 1;
    wait_until_asleep(&flusher);
    step = 2;
    wait_until_asleep(&forker);
    rewind_line();
    read_line();
    funlockfile(stream);
    pthread_join(flush, NULL);
    pthread_join(fork_, NULL);
}

static atomic_bool stop;

static void *flush_always(void *unused)
{
    while (!stop) fflush(NULL);
    return unused;
}

static void *read_always(void *unused)
{
    while (!stop) {
        flockfile(stream);
        rewind_line();
        read_line();
        funlockfile(stream);
    }
    return unused;
}

static void test_by_chance(long ms)
{
    pthread_t flush, read_;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pthread_create(&flush, NULL, flush_always, NULL);
    pthread_create(&read_, NULL, read_always, NULL);
    do {
        pid_t pid = fork();
        if (pid == 0) _exit(0);
        EXPECT(pid > 0 && waitpid(pid, NULL, 0) == pid);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
    stop = true;
    pthread_join(flush, NULL);
    pthread_join(read_, NULL);
}

static void start_thread(void)
{
    static bool done;
    if (!done) use_list_elsewhere();
    done = true;
}

/* libc's fork of a single thread takes no lock of stdio, and frees none in the child. It counts the threads
 * before the handlers run, one of which may start a thread. */
static void test_alone(void)
{
    fork_once();
    pthread_atfork(start_thread, NULL, NULL);
    fork_once();
}

int main(int count, char **arguments)
{
    alarm(SECONDS);
    make_stream();
    test_alone();
    test_in_order();
    test_by_chance(count > 1 ? atol(arguments[1]) : CHANCE_MS);
    return expect_status();
}
