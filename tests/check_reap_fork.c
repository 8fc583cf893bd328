/* check_reap_fork.c: what the child of a fork finds of reaps that other threads were ending, or were in:
 * their parents can be cleared and destroyed. */
#include "check_reap.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, FORKS = 300 };

static void *parent;

static void setup(void) { reapCreate(&parent, NULL); }

static void teardown(void)
{
    assert_valid(parent);
    reapDestroy(&parent);
}

/* The wait status of a child that does this. */
static int in_child(int (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(body());
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int clear_and_destroy(void)
{
    reapFreeAll(&parent);
    bool valid = reap_is_valid(parent, NULL) && stats_of(parent).children == 0;
    valid = valid && reapMalloc(&parent, 1000);
    reapDestroy(&parent);
    return !valid;
}

/* --- while others end ------------------------------------------------------------------------ */

static atomic_bool over;

static void linger(void *arg)
{
    (void)arg;
    sched_yield();
}

/* A tree of three levels, with functions and without. */
static void *make_and_end(void *unused)
{
    while (!over) {
        void *top, *child, *leaf;
        reapCreate(&top, &parent);
        for (int i = 0; i < 4; i++) {
            reapCreate(&child, &top);
            reapCreate(&leaf, &child);
            reapMalloc(&leaf, 20000);
            if (i % 2) reapOnDestroy(&leaf, linger, NULL);
            reapOnDestroy(&child, linger, NULL);
        }
        reapOnDestroy(&top, linger, NULL);
        if (leaf) reapFreeAll(&child);
        reapDestroy(&top);
    }
    return unused;
}

START_TEST(others_end_children)
{
    pthread_t threads[THREADS];
    over = false;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, make_and_end, NULL);
    for (unsigned n = steps_of(FORKS); n > 0; n--) ck_assert_int_eq(in_child(clear_and_destroy), 0);
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}
END_TEST

/* --- in the middle of it --------------------------------------------------------------------- */

static sem_t there, on;
static unsigned ran;

static void count(void *arg)
{
    (void)arg;
    ran++;
}

static void stand_still(void *arg)
{
    (void)arg;
    sem_post(&there);
    sem_wait(&on);
}

static void in_a_thread_that_stands(void *(*body)(void *), int (*child)(void), int expected)
{
    pthread_t thread;
    sem_init(&there, 0, 0);
    sem_init(&on, 0, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, body, NULL), 0);
    sem_wait(&there);
    ck_assert_int_eq(in_child(child), expected);
    sem_post(&on);
    pthread_join(thread, NULL);
}

static void *end_slowly(void *clears)
{
    void *reap;
    reapCreate(&reap, &parent);
    reapOnDestroy(&reap, count, NULL);
    reapOnDestroy(&reap, stand_still, NULL);
    reapDestroy(&reap);
    return clears;
}

/* What had been called is not called again, and the rest is. */
static int ends_once(void) { return clear_and_destroy() != 0 || ran != 1; }

START_TEST(one_was_being_destroyed)
{
    ran = 0;
    in_a_thread_that_stands(end_slowly, ends_once, 0);
    ck_assert_uint_eq(ran, 1);
}
END_TEST

/* --- in reaps -------------------------------------------------------------------------------- */

static void *shared;

static void *stand_in(void *unused)
{
    void *reap;
    reapCreate(&reap, &parent);
    reapEnter(&reap);
    reapEnter(&reap);
    reapEnter(&shared);
    stand_still(NULL);
    reapLeave();
    reapLeave();
    reapLeave();
    reapDestroy(&reap);
    return unused;
}

START_TEST(others_are_in_reaps)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    ck_assert_int_eq(reapCreateWith(&shared, &parent, &options), 0);
    in_a_thread_that_stands(stand_in, clear_and_destroy, 0);
    reapDestroy(&shared);
}
END_TEST

/* The forking thread is in the shared reap too, and in one of its own; so it is in the child, alone. */
static void *mine;

static int leave_and_destroy(void)
{
    reapEnter(&shared);
    reapLeave();
    reapLeave();
    reapLeave();
    return clear_and_destroy();
}

static int destroy_within(void)
{
    reapDestroy(&mine);
    return 0;
}

static int destroy_all(void)
{
    reapDestroy(&parent);
    return 0;
}

START_TEST(the_forking_thread_is_in_reaps)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    ck_assert_int_eq(reapCreateWith(&shared, &parent, &options), 0);
    reapCreate(&mine, &parent);
    reapEnter(&mine);
    reapEnter(&shared);
    in_a_thread_that_stands(stand_in, leave_and_destroy, 0);
    reapLeave();
    in_a_thread_that_stands(stand_in, destroy_within, SIGABRT);
    in_a_thread_that_stands(stand_in, destroy_all, SIGABRT);
    reapLeave();
    reapDestroy(&mine);
    reapDestroy(&shared);
}
END_TEST

int main(void)
{
    TCase *tests = new_case("reap_fork", 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, others_end_children);
    tcase_add_test(tests, one_was_being_destroyed);
    tcase_add_test(tests, others_are_in_reaps);
    tcase_add_test(tests, the_forking_thread_is_in_reaps);
    return run("reap_fork", tests);
}
