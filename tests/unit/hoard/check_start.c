/* SPDX-License-Identifier: Apache-2.0 */
/* check_start.c: a fork while another thread starts the allocator. Its last step registers the fork handlers:
 * pthread_atfork is wrapped here, to stop before and behind it. */
#include "support/check_backend.h"

#include "heap/heap_table.h"
#include "hoard/init.h"

#include <semaphore.h>

int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

int __wrap_atexit(void (*fn)(void));

static sem_t reached, on;
static bool stops;
static unsigned registrations, at_exit;

static void stop_here(void)
{
    if (!stops) return;
    sem_post(&reached);
    sem_wait(&on);
}

static unsigned refusals; /* to come: libc has no memory */

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    if (refusals > 0) return refusals--, ENOMEM;
    stop_here();
    int result = __real_pthread_atfork(prepare, parent, child);
    registrations++;
    stop_here();
    return result;
}

int __wrap_atexit(void (*fn)(void))
{
    (void)fn;
    at_exit++;
    return 0;
}

static void *start(void *unused)
{
    hoard_free(hoard_malloc(100));
    return unused;
}

/* A child that uses the allocator; how often there are handlers then. */
static int registrations_in_child(void)
{
    stops = false;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        void *block = hoard_malloc(1000);
        hoard_free(hoard_malloc(200000));
        hoard_free(block);
        _exit(block == NULL ? 99 : (int)registrations);
    }
    stops = true;
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "status %x", (unsigned)status);
    return WEXITSTATUS(status);
}

TEST(a_child_has_the_fork_handlers_once, .times = PATHS)
{
    pthread_t thread;
    use_path(_i, NULL);
    sem_init(&reached, 0, 0);
    sem_init(&on, 0, 0);
    stops = true;
    ck_assert_int_eq(pthread_create(&thread, NULL, start, NULL), 0);
    sem_wait(&reached); /* before they are registered */
    ck_assert_int_eq(registrations_in_child(), 1);
    sem_post(&on);
    sem_wait(&reached); /* behind it */
    ck_assert_int_eq(registrations_in_child(), 1);
    sem_post(&on);
    pthread_join(thread, NULL);
    ck_assert_int_eq(registrations_in_child(), 1);
}

TEST(what_is_refused_is_registered_later, .times = PATHS)
{
    use_path(_i, NULL);
    refusals = 3;
    for (unsigned i = 0; i < 6; i++) hoard_free(hoard_malloc(200000));
    ck_assert_uint_eq(refusals, 0);
    ck_assert_uint_eq(registrations, 1);
    ck_assert_int_eq(registrations_in_child(), 1);
}

static _Atomic bool is_within;
static pthread_t later;

static void *be_within(void *unused)
{
    lock_take(&heap_table_lock);
    is_within = true;
    usleep(100000);
    lock_give(&heap_table_lock);
    return unused;
}

static void start_thread(void)
{
    pthread_create(&later, NULL, be_within, NULL);
    for (int patience = 50; patience-- && !is_within;) usleep(1000);
}

/* It was registered before the library's handlers, and so runs after them. */
TEST(a_fork_is_not_amid_the_thread_of_a_handler)
{
    int status;
    __real_pthread_atfork(start_thread, NULL, NULL);
    start(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(is_within);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    pthread_join(later, NULL);
    ck_assert(is_within && !lock_forks_alone);
}

TEST(forks_without_such_a_handler_are_alone)
{
    start(NULL);
    ck_assert(!lock_forks_alone);
    ck_assert_int_eq(registrations_in_child(), 1);
    ck_assert(lock_forks_alone);
}

TEST(a_refusal_does_not_start_it_twice)
{
    setenv("REAP_OPTIONS", "stats=1", 1);
    refusals = 2;
    start(NULL);
    hoard_start_late();
    hoard_start_late();
    ck_assert_uint_eq(at_exit, 1);
    ck_assert(hoard_handles_forks());
    ck_assert_uint_eq(registrations, 1);
}

static void *ask(void *unused)
{
    (void)unused;
    return hoard_handles_forks() ? &stops : NULL;
}

/* The second thread waits until the first one has tried. */
TEST(two_threads_register_once)
{
    pthread_t one, two;
    void *said[2];
    sem_init(&reached, 0, 0);
    sem_init(&on, 0, 0);
    refusals = 1;
    hoard_start();
    stops = true;
    ck_assert_int_eq(pthread_create(&one, NULL, ask, NULL), 0);
    sem_wait(&reached);
    stops = false;
    ck_assert_int_eq(pthread_create(&two, NULL, ask, NULL), 0);
    usleep(2000);
    sem_post(&on);
    pthread_join(one, &said[0]);
    pthread_join(two, &said[1]);
    ck_assert(said[0] != NULL && said[1] != NULL);
    ck_assert_uint_eq(registrations, 1);
}

int main(void) { return run_tests((struct suite){0}); }
