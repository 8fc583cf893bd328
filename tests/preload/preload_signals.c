/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler that interrupts malloc and makes children: SIGALRM comes at a high rate, into slow paths
 * as well. POSIX lets a handler call _Fork, and execute a program in the child, but not fork. The parent goes
 * on allocating. Alone, and while other threads allocate. */
#include "support/expect.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

enum { SLOTS = 2000, FORKS = 50, MICROSECONDS = 300, CHILD_SECONDS = 100, THREADS = 2 };

static volatile sig_atomic_t forks, may_fork, signals;
static pid_t children[FORKS];
static atomic_int stop;

/* Only what POSIX lets a handler do. */
static void fork_now(int number)
{
    static char name[] = "true", *const command[] = {name, NULL};
    int saved = errno;
    (void)number;
    signals++;
    if (may_fork && forks < FORKS) {
        pid_t pid = _Fork();
        if (pid == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(CHILD_SECONDS);
            if (forks % 2 == 0) _exit(0);
            execve("/bin/true", command, environ);
            _exit(1);
        } else if (pid > 0) {
            children[forks++] = pid;
        }
    }
    errno = saved;
}

struct work {
    unsigned seed;
    unsigned char *blocks[SLOTS];
    size_t sizes[SLOTS];
};

static unsigned next(struct work *work) { return (work->seed = work->seed * 1103515245 + 12345) >> 8; }

static void drop(struct work *work, unsigned i)
{
    unsigned char *block = work->blocks[i];
    if (!block) return;
    size_t size = work->sizes[i];
    EXPECT(block[0] == (unsigned char)i && block[size - 1] == (unsigned char)size);
    work->blocks[i] = NULL;
    free(block);
}

/* Of all sizes, large ones too, and now and then a great part is freed: so slow paths are frequent. */
static void step(struct work *work)
{
    unsigned i = next(work) % SLOTS;
    size_t size = 16 + next(work) % (i % 50 == 0 ? 300000 : 3000);
    drop(work, i);
    unsigned char *block = next(work) % 4 ? malloc(size) : realloc(malloc(OPAQUE((size_t)40)), size);
    EXPECT(block);
    if (!block) return;
    block[0] = (unsigned char)i;
    block[size - 1] = (unsigned char)size;
    work->sizes[i] = size;
    work->blocks[i] = block;
    if (next(work) % 5000 == 0)
        for (unsigned k = 0; k < SLOTS; k++)
            if (k % 8) drop(work, k);
}

static void drop_all(struct work *work)
{
    for (unsigned i = 0; i < SLOTS; i++) drop(work, i);
}

static void *work_aside(void *seed)
{
    struct work *work = calloc(1, sizeof *work);
    work->seed = (unsigned)(size_t)seed;
    while (!stop) step(work);
    drop_all(work);
    free(work);
    return NULL;
}

static void storm(unsigned microseconds)
{
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void collect_children(void)
{
    for (int i = 0; i < forks; i++) {
        int status = -1;
        EXPECT(waitpid(children[i], &status, 0) == children[i]);
        EXPECT(status == 0);
    }
    forks = 0;
}

static void test_storm(int threads)
{
    static struct work work;
    pthread_t ids[THREADS];
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    stop = 0;
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the main thread's alone */
    for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work_aside, (void *)(size_t)(i + 1));
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    work.seed = 7;
    signals = 0;
    may_fork = 1;
    storm(MICROSECONDS);
    while (forks < FORKS) step(&work);
    storm(0);
    may_fork = 0;
    stop = 1;
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    collect_children();
    drop_all(&work);
    EXPECT(signals >= FORKS);
}

int main(void)
{
    struct sigaction action = {.sa_handler = fork_now, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    test_storm(0);
    test_storm(THREADS);
    return expect_status();
}
