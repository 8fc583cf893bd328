/* SPDX-License-Identifier: Apache-2.0 */
/* check_lock.c: mutual exclusion, and no sleeper forgotten, under each way of waiting. */
#include "support/check_backend.h"

#include "base/lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 12 };

static const struct {
    enum lock_kind kind;
    unsigned cpus;
} ways[] = {{LOCK_BOTH, 2}, {LOCK_BOTH, 1}, {LOCK_SPIN, 2}, {LOCK_SPIN, 1}, {LOCK_BLOCK, 2}};

enum { WAYS = sizeof ways / sizeof ways[0] };

static struct lock lock;
static unsigned inside, counter;
static unsigned rounds;

/* Every few rounds the holder lets the others run, so that they spin in vain and sleep. */
static void *count_under_lock(void *arg)
{
    static char complaint[] = "two inside";
    (void)arg;
    for (unsigned i = 0; i < rounds; i++) {
        lock_take(&lock);
        if (inside++ != 0) return complaint;
        counter++;
        if (i % 8 == 0) sched_yield();
        inside--;
        lock_give(&lock);
    }
    return NULL;
}

static void run_threads(unsigned n, void *(*fn)(void *))
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < n; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, fn, NULL), 0);
    for (unsigned i = 0; i < n; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        ck_assert_msg(complaint == NULL, "%s", (char *)complaint);
    }
}

START_TEST(one_at_a_time)
{
    lock_configure(ways[_i].kind, ways[_i].cpus);
    rounds = 20000;
    run_threads(THREADS, count_under_lock);
    ck_assert_uint_eq(counter, THREADS * rounds);
    ck_assert_uint_eq(atomic_load(&lock.state), LOCK_FREE);
}
END_TEST

/* All but one asleep, again and again: if a wake-up is lost, the last of them never comes back and
 * Check ends the test. */
static void *hold_long(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < rounds; i++) {
        lock_take(&lock);
        counter++;
        if (i % 3 == 0) usleep(50);
        lock_give(&lock);
        if (i % 5 == 0) usleep(20); /* and sometimes nobody is there to pass by */
    }
    return NULL;
}

START_TEST(every_sleeper_is_woken)
{
    lock_configure(ways[_i].kind, ways[_i].cpus);
    rounds = 300;
    run_threads(THREADS, hold_long);
    ck_assert_uint_eq(counter, THREADS * rounds);
    ck_assert_uint_eq(atomic_load(&lock.state), LOCK_FREE);
}
END_TEST

START_TEST(try_says_who_has_it)
{
    ck_assert(lock_try(&lock));
    ck_assert(!lock_try(&lock));
    lock_give(&lock);
    ck_assert(lock_try(&lock));
    lock_reset(&lock);
    ck_assert(lock_try(&lock));
}
END_TEST

int main(void)
{
    TCase *tests = new_case("lock", 20);
    tcase_add_loop_test(tests, one_at_a_time, 0, WAYS);
    tcase_add_loop_test(tests, every_sleeper_is_woken, 0, WAYS);
    tcase_add_test(tests, try_says_who_has_it);
    return run_cases("lock", tests, (TCase *)NULL);
}
