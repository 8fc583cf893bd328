/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_tree.c: the lists of children, and their locks.
 *
 * A list is guarded by one of a few locks, chosen by the parent's address, rather than by one in
 * each pool: so few can be taken around fork, and a forked child, whose other threads are gone,
 * finds every list whole and every lock free. No more than one is ever held otherwise, and nothing
 * is called under it, so that they have no rank to keep. A thread holds one for a few instructions: who
 * waits spins, and then offers its processor.
 */
#include "apr_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/single_threaded.h>

enum { LOCK_BITS = 4, LOCKS = 1 << LOCK_BITS, SPINS = 100 };

struct list_lock {
    _Alignas(64) _Atomic unsigned held; /* a cache line each */
};

static struct list_lock locks[LOCKS];

static __attribute__((noinline, cold)) void wait_for(struct list_lock *lock)
{
    unsigned spins = 0;

    do
        while (atomic_load_explicit(&lock->held, memory_order_relaxed) != 0)
            if (++spins > SPINS) sched_yield();
    while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) != 0);
}

static inline void lock(struct list_lock *lock)
{
    if (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) != 0) wait_for(lock);
}

static void unlock(struct list_lock *lock) { atomic_store_explicit(&lock->held, 0, memory_order_release); }

/* Takes the lock of a parent's list, which the high bits of a product choose, since they depend on all
 * bits of the address. NULL where there is one thread, which needs none: it makes no other meanwhile. */
static inline struct list_lock *take(const apr_pool_t *parent)
{
    if (__libc_single_threaded) return NULL;
    uint64_t mixed = (uint64_t)(uintptr_t)parent * UINT64_C(0x9E3779B97F4A7C15);
    struct list_lock *chosen = &locks[mixed >> (64 - LOCK_BITS)];
    lock(chosen);
    return chosen;
}

static void release(struct list_lock *taken)
{
    if (taken) unlock(taken);
}

static void take_all(void)
{
    for (int i = 0; i < LOCKS; i++) lock(&locks[i]);
}

static void release_all(void)
{
    for (int i = LOCKS; i-- > 0;) unlock(&locks[i]);
}

void pool_tree_prepare_for_fork(void) { pthread_atfork(take_all, release_all, release_all); }

void pool_tree_link(apr_pool_t *pool, apr_pool_t *parent)
{
    struct list_lock *taken = take(parent);

    pool->parent = parent;
    pool->sibling = parent->child;
    if (pool->sibling) pool->sibling->ref = &pool->sibling;
    pool->ref = &parent->child;
    parent->child = pool;
    release(taken);
}

void pool_tree_unlink(apr_pool_t *pool)
{
    struct list_lock *taken = take(pool->parent);

    *pool->ref = pool->sibling;
    if (pool->sibling) pool->sibling->ref = pool->ref;
    release(taken);
}

void pool_tree_hand_up(apr_pool_t *pool)
{
    apr_pool_t *child;

    while ((child = pool->child)) {
        pool_tree_unlink(child);
        child->parent = NULL;
        if (pool->parent) pool_tree_link(child, pool->parent);
    }
}
