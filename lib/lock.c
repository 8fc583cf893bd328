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
    lock_spins = kind == LOCK_BLOCK || cpus < 2 ? 0 : SPINS;
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static bool spin(struct lock *lock, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == LOCK_FREE && lock_try(lock)) return true;
        pause_briefly();
    }
    return false;
}

void lock_wait(struct lock *lock)
{
    int saved = errno;
    bool taken = spin(lock, lock_spins);
    while (!taken && lock_kind == LOCK_SPIN) {
        sched_yield(); /* the holder may be waiting for this very CPU */
        taken = spin(lock, lock_spins);
    }
    /* Whoever sleeps leaves LOCK_WANTED behind, also when it then gets the lock: the last of several
     * sleepers cannot know that it is the last. So one that has slept never takes it by spin(),
     * which would leave LOCK_HELD, and the other sleepers unwoken for good. */
    while (!taken && atomic_exchange_explicit(&lock->state, LOCK_WANTED, memory_order_acquire) != LOCK_FREE)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, LOCK_WANTED, NULL, NULL, 0);
    errno = saved;
}

void lock_wake(struct lock *lock)
{
    int saved = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
