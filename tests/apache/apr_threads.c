/* SPDX-License-Identifier: Apache-2.0 */
/* apr_threads.c: pools on reaps from many threads, where stock pools would need an allocator with a
 * mutex: children of one parent made and destroyed by all threads at once, pools that one thread
 * makes and another destroys, and forks in the middle of it. A process that has threads gets one that
 * purges, also after a fork. Run under libreap-apr only.
 */
#define REAP_APR_OPTIONAL
#include "apr_reap.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apr_expect.h"

/* The least number of rounds, and the least time: on a busy machine threads take turns at first. */
enum { THREADS = 4, ROUNDS = 20000, FORKS = 40, SECONDS = 2, SLOTS = 64 };

static apr_pool_t *parent;
static _Atomic(apr_pool_t *) slot[SLOTS]; /* pools on their way from one thread to another */
static atomic_ulong made, ended;
static time_t over;

static apr_status_t count_end(void *pool)
{
    (void)pool;
    atomic_fetch_add(&ended, 1);
    return APR_SUCCESS;
}

static apr_pool_t *child_of(apr_pool_t *above)
{
    apr_pool_t *pool;
    expect(apr_pool_create(&pool, above) == APR_SUCCESS, "create");
    apr_pool_cleanup_register(pool, pool, count_end, apr_pool_cleanup_null);
    atomic_fetch_add(&made, 1);
    return pool;
}

static void fill(apr_pool_t *pool, unsigned seed)
{
    unsigned char *object[20];
    for (unsigned i = 0; i < 20; i++) {
        object[i] = apr_palloc(pool, 1 + seed % 500);
        *object[i] = (unsigned char)(seed + i);
    }
    for (unsigned i = 0; i < 20; i++) expect(*object[i] == (unsigned char)(seed + i), "contents");
}

static void *churn(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < ROUNDS || time(NULL) < over; i++) {
        apr_pool_t *pool = child_of(parent), *other;
        seed = seed * 1103515245 + 12345;
        fill(pool, seed >> 8);
        fill(child_of(pool), seed >> 9);
        if (seed >> 31) apr_pool_clear(pool);
        other = atomic_exchange(&slot[(seed >> 16) % SLOTS], pool);
        if (other) apr_pool_destroy(other);
    }
    return NULL;
}

static int has_purge_thread(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && !found && (entry = readdir(tasks)) != NULL;) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *comm = fopen(path, "r");
        if (comm && fgets(name, sizeof name, comm)) found = strcmp(name, "reap-purge\n") == 0;
        if (comm) fclose(comm);
    }
    if (tasks) closedir(tasks);
    return found;
}

static void *wait_for_end(void *arg)
{
    pause();
    return arg;
}

/* With a second thread and some pools the process gets the third; without, it does not. */
static void expect_purge_thread(void)
{
    pthread_t second;
    expect(!has_purge_thread(), "a process of one thread has none that purges");
    expect(pthread_create(&second, NULL, wait_for_end, NULL) == 0, "thread");
    pthread_detach(second);
    for (int i = 0; i < 1000 && !has_purge_thread(); i++) {
        apr_pool_t *pool;
        expect(apr_pool_create(&pool, parent) == APR_SUCCESS, "create");
        expect(apr_palloc(pool, 100000) != NULL, "a slow path");
        usleep(i * 100);
    }
    expect(has_purge_thread(), "a process that has threads has one that purges");
}

/* So it is in a process, its child and that one's child. */
static void look_for_purge_thread(int generations)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(100);
        expect_purge_thread();
        if (generations > 1) look_for_purge_thread(generations - 1);
        _exit(0);
    }
    expect(waitpid(child, &status, 0) == child && status == 0, "a child with threads");
}

/* In a child of fork: every list whole, every lock free. What other threads were just destroying
 * stays half destroyed, so the parent itself is left alone. */
static void use_in_child(void)
{
    alarm(100);
    for (unsigned i = 0; i < 100; i++) {
        apr_pool_t *pool = child_of(parent);
        fill(pool, i);
        if (i % 2) apr_pool_destroy(pool);
    }
    apr_pool_cleanup_for_exec();
    _exit(0);
}

static void fork_meanwhile(void)
{
    for (int i = 0; i < FORKS || time(NULL) < over; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) use_in_child();
        expect(waitpid(child, &status, 0) == child && status == 0, "a forked child");
    }
}

/* The locks of lists are held by who forks, in the middle of it: nobody makes two children meanwhile. */
static void look_while_forking(void)
{
    const struct timespec moment = {0, 2000000};
    unsigned long before = made;
    nanosleep(&moment, NULL);
    expect(made - before <= THREADS, "the lists' locks are held around fork");
}

int main(void)
{
    pthread_t thread[THREADS];
    pthread_atfork(look_while_forking, NULL, NULL); /* the first: so what is prepared is prepared before it */
    expect(apr_initialize() == APR_SUCCESS, "initialize");
    /* its allocator has no mutex */
    expect(apr_pool_create_unmanaged(&parent) == APR_SUCCESS, "parent");
    look_for_purge_thread(3);
    over = time(NULL) + SECONDS;
    for (uintptr_t i = 0; i < THREADS; i++)
        expect(pthread_create(&thread[i], NULL, churn, (void *)i) == 0, "thread");
    fork_meanwhile();
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    apr_pool_destroy(parent);
    printf("made %lu, ended %lu\n", made, ended);
    expect(made == ended && made >= 2ul * THREADS * ROUNDS, "every pool ended, once");
    apr_terminate();
    return 0;
}
