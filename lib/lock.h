/* lock.h: a mutex of one word that spins briefly and then sleeps.   (floor 0)
 *
 * Spin-then-block is the best of the three kinds compared for servers (McDowell, Eggers, Gribble,
 * PPoPP 2003, 2.4 and table 2). All zero is an unlocked lock; nothing is allocated and nothing has
 * to be destroyed, and a forked child may simply zero one that its parent's thread held.
 *
 * Rank: locks are taken in the order  reap, heap (by id), global heap, arenas, metadata ; fork
 * takes them in that order too.
 */
#ifndef LOCK_H
#define LOCK_H

#include "base.h"

enum { LOCK_FREE, LOCK_HELD, LOCK_WANTED /* held, and somebody sleeps */ };

struct lock {
    _Atomic uint32_t state;
};

enum lock_kind { LOCK_BOTH, LOCK_SPIN, LOCK_BLOCK };

/* How contended locks wait, for the whole process; LOCK_BOTH before it is called. On one CPU there is no
 * use in spinning, so callers pass the number that they may run on. */
void lock_configure(enum lock_kind kind, unsigned cpus);

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);

static inline bool lock_try(struct lock *lock)
{
    uint32_t expected = LOCK_FREE;
    return atomic_compare_exchange_strong_explicit(&lock->state, &expected, LOCK_HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void lock_take(struct lock *lock)
{
    if (!lock_try(lock)) lock_wait(lock);
}

static inline void lock_give(struct lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, LOCK_FREE, memory_order_release) == LOCK_WANTED)
        lock_wake(lock);
}

/* In a forked child, where no other thread exists. */
static inline void lock_reset(struct lock *lock)
{
    atomic_store_explicit(&lock->state, LOCK_FREE, memory_order_relaxed);
}

#endif
