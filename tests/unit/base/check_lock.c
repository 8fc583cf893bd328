/* SPDX-License-Identifier: Apache-2.0 */
/* check_lock.c: mutual exclusion, and no sleeper forgotten, under each way of waiting. */
#include "support/check_backend.h"

#include "base/lock.h"

#include <time.h>

enum { THREADS = 12 };

static const struct {
    enum lock_kind kind;
    unsigned cpus;
} ways[] = {{LOCK_BOTH, 2}, {LOCK_BOTH, 1}, {LOCK_SPIN, 2}, {LOCK_SPIN, 1}, {LOCK_BLOCK, 2}};

enum { WAYS = sizeof ways / sizeof ways[0] };

static struct lock lock;
static unsigned inside, counter;
static unsigned rounds;
static atomic_uint rounds_of_all;
static time_t began;

/* Each round may cost the others' time slices on a machine that has much else to do: after some seconds a
 * fiftieth of the rounds is enough. */
enum { SECONDS = 5 };

static bool goes_on(unsigned round)
{
    return round < rounds && (round < rounds / 50 || round % 8 != 0 || time(NULL) - began < SECONDS);
}

/* Every few rounds the holder lets the others run, so that they spin without success, and sleep. */
static void *count_under_lock(void *arg)
{
    static char complaint[] = "two inside";
    (void)arg;
    unsigned i;
    for (i = 0; goes_on(i); i++) {
        lock_take(&lock);
        if (inside++ != 0) return complaint;
        counter++;
        if (i % 8 == 0) sched_yield();
        inside--;
        lock_give(&lock);
    }
    rounds_of_all += i;
    return NULL;
}

static void run_threads(unsigned n, void *(*fn)(void *))
{
    pthread_t threads[THREADS];
    began = time(NULL);
    for (unsigned i = 0; i < n; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, fn, NULL), 0);
    for (unsigned i = 0; i < n; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        ck_assert_msg(complaint == NULL, "%s", (char *)complaint);
    }
}

static uint64_t processor_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

TEST(one_at_a_time, .times = WAYS)
{
    lock_configure(ways[_i].kind, ways[_i].cpus);
    rounds = 20000;
    run_threads(THREADS, count_under_lock);
    /* Threads that should sleep take 1 to 3 us of processor time a round; those that cannot, 60 and more. */
    if (ways[_i].kind != LOCK_SPIN) ck_assert_uint_lt(processor_us(), 30 * counter);
    ck_assert_uint_eq(counter, rounds_of_all);
    ck_assert_uint_eq(atomic_load(&lock.state), LOCK_FREE);
}

/* All but one asleep, again and again: if a wake-up is lost, the last of them never comes back and
 * Check ends the test. */
static void *hold_long(void *arg)
{
    (void)arg;
    unsigned i;
    for (i = 0; goes_on(i); i++) {
        lock_take(&lock);
        counter++;
        if (i % 3 == 0) usleep(50);
        lock_give(&lock);
        if (i % 5 == 0) usleep(20); /* and sometimes nobody is there to pass by */
    }
    rounds_of_all += i;
    return NULL;
}

TEST(every_sleeper_is_woken, .times = WAYS)
{
    lock_configure(ways[_i].kind, ways[_i].cpus);
    rounds = 300;
    run_threads(THREADS, hold_long);
    ck_assert_uint_eq(counter, rounds_of_all);
    ck_assert_uint_eq(atomic_load(&lock.state), LOCK_FREE);
}

/* A fork waits for who holds a lock. Where there is one thread it takes none, and whatever it reads stays as
 * it is. */
TEST(fork_takes_locks_where_there_are_threads, .times = 3)
{
    static struct gate gate = GATE_OF_RANK(RANK_TRANSIT, LOCK_GATE);
    bool threads = _i < 2;
    __libc_single_threaded = _i > 0;
    lock_forks_alone = _i != 1; /* with 1 nothing is known yet of the program's handlers */
    for (unsigned child = 0; child < 2; child++) {
        lock_for_fork(&lock);
        gate_close_for_fork(&gate);
        ck_assert_uint_eq(atomic_load(&lock.state), threads ? LOCK_HELD : LOCK_FREE);
        ck_assert_uint_eq(atomic_load(&gate.closed), threads);
        ck_assert_uint_eq(lock_held(), threads ? 2 : 0);
        __libc_single_threaded = false; /* a handler of the program makes a thread */
        (child ? lock_reset : lock_after_fork)(&lock);
        (child ? gate_reset : gate_open_after_fork)(&gate);
        __libc_single_threaded = _i > 0;
        ck_assert_uint_eq(atomic_load(&lock.state) + atomic_load(&gate.closed) + lock_held(), 0);
    }
    ck_assert(lock_try(&lock));
    lock_reset(&lock);
    ck_assert_uint_eq(atomic_load(&lock.state), LOCK_FREE);
    gate_close(&gate); /* as that thread does */
    gate_open_after_fork(&gate);
    ck_assert_uint_eq(atomic_load(&gate.closed), 1);
    gate_open(&gate);
}

TEST(try_says_who_has_it)
{
    ck_assert(lock_try(&lock));
    ck_assert(!lock_try(&lock));
    lock_give(&lock);
    ck_assert(lock_try(&lock));
    lock_reset(&lock);
    ck_assert(lock_try(&lock));
}

static struct gate first = GATE_OF_RANK(RANK_TRANSIT, LOCK_GATE);
static struct gate second = GATE_OF_RANK(RANK_ARENAS, LOCK_GATE_2);
static atomic_bool may_open, has_passed;
static atomic_uint have_closed;

static void *close_gate(void *gate)
{
    gate_close(gate);
    have_closed++;
    while (!may_open) sched_yield();
    gate_open(gate);
    return NULL;
}

/* The closer waits for this thread, which comes to the gates again. */
TEST(who_is_within_passes)
{
    struct gate *gates[] = {&first, &second, &first};
    pthread_t closers[2];
    gate_enter(&second);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&closers[i], NULL, close_gate, gates[i]), 0);
        while (atomic_load(&gates[i]->closed) == 0) sched_yield();
    }
    while (have_closed == 0) sched_yield();
    for (unsigned i = 0; i < 3; i++) gate_enter(gates[i]);
    for (unsigned i = 3; i-- > 0;) gate_leave(gates[i]);
    usleep(2000);
    ck_assert_uint_eq(have_closed, 1);
    gate_leave(&second);
    may_open = true;
    for (unsigned i = 0; i < 2; i++) pthread_join(closers[i], NULL);
    ck_assert_uint_eq(lock_depth, 0);
}

static void *pass_both(void *arg)
{
    gate_enter(&first);
    gate_enter(&second);
    has_passed = true;
    gate_leave(&second);
    gate_leave(&first);
    return arg;
}

/* Who has closed the second gate does not wait for those in the first one, and must not be disturbed. */
TEST(who_is_in_the_first_waits_at_the_second)
{
    pthread_t thread;
    gate_close(&second);
    ck_assert_int_eq(pthread_create(&thread, NULL, pass_both, NULL), 0);
    while (atomic_load(&second.closed) != 2) sched_yield();
    usleep(2000);
    ck_assert(!has_passed);
    gate_open(&second);
    pthread_join(thread, NULL);
    ck_assert(has_passed);
}

int main(void) { return run_tests((struct suite){0}); }
