#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About the time of a short critical section; more only burns what the holder needs. */
enum { SPINS = 100 };

static enum lock_kind lock_kind = LOCK_BOTH;
static unsigned lock_spins = SPINS;

void lock_configure(enum lock_kind kind, unsigned cpus)
{
    lock_kind = kind;
    lock_spins = kind == LOCK_BLOCK ? 0 : cpus < 2 ? 1 : SPINS;
}

void lock_sleep(_Atomic uint32_t *word, uint32_t value)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    errno = saved;
}

void lock_wake_sleeper(_Atomic uint32_t *word)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

/* Takes the lock with the given state if it becomes free soon. Looks ever less often: who has the lock and
 * wants it again soon does its work in its own cache meanwhile. */
static bool spin(struct lock *lock, uint32_t state)
{
    for (unsigned i = 0, wait = 1; i < lock_spins; i += wait, wait *= 2) {
        uint32_t seen = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (seen == LOCK_FREE && atomic_compare_exchange_strong_explicit(
                                     &lock->state, &seen, state, memory_order_acquire, memory_order_relaxed))
            return true;
        for (unsigned k = 0; k < wait; k++) lock_pause();
    }
    return false;
}

static void yield_until_taken(struct lock *lock)
{
    while (!spin(lock, LOCK_HELD)) sched_yield(); /* the holder may be waiting for this very CPU */
}

/* Whoever has slept takes the lock as LOCK_WANTED: there may be other sleepers, of whom only the state
 * tells, and one wake-up too many costs less than one too few. */
static void sleep_until_taken(struct lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, LOCK_WANTED, memory_order_acquire) != LOCK_FREE) {
        lock_sleep(&lock->state, LOCK_WANTED);
        if (spin(lock, LOCK_WANTED)) return;
    }
}

void lock_wait(struct lock *lock)
{
    int saved = errno;
    if (lock_kind == LOCK_SPIN)
        yield_until_taken(lock);
    else if (!spin(lock, LOCK_HELD))
        sleep_until_taken(lock);
    errno = saved;
}

void lock_wake(struct lock *lock) { lock_wake_sleeper(&lock->state); }

/* --- fork ------------------------------------------------------------------------------------ */

enum {
    CAUGHT = 1 << 30, /* in lock_depth: the fork that is under way interrupted this thread with locks */
    PATIENCE = 50     /* yields of the CPU to those who hold a lock that it wants */
};

__thread unsigned lock_depth;

void lock_fork_begin(void)
{
    if (lock_depth != 0) lock_depth |= CAUGHT;
}

void lock_fork_end(void) { lock_depth &= ~(unsigned)CAUGHT; }

void lock_for_fork(struct lock *lock)
{
    if ((lock_depth & CAUGHT) == 0) {
        lock_take(lock);
    } else {
        unsigned left = PATIENCE;
        while (!lock_try(lock))
            if (left-- == 0)
                return;
            else
                sched_yield();
    }
    lock->forker = &lock_depth;
}

void lock_after_fork(struct lock *lock)
{
    if (lock->forker != &lock_depth) return;
    lock->forker = NULL;
    lock_give(lock);
}

/* One that the interrupted call holds is free too: nobody else is here, and it is given back all the same. */
void lock_reset(struct lock *lock)
{
    if (lock->forker == &lock_depth) lock_count(-1);
    lock->forker = NULL;
    atomic_store_explicit(&lock->state, LOCK_FREE, memory_order_relaxed);
}
