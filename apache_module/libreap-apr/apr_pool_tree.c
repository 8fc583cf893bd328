/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_tree.c: the lists of children, their locks, and dead pools for the next ones.
 *
 * A list is guarded by one of a few locks, chosen by the parent's address, rather than by one in
 * each pool: so few can be taken around fork, and a forked child, whose other threads are gone,
 * finds every list whole and every lock free. No more than one is ever held otherwise, and nothing
 * is called under it, so that they have no rank to keep. A thread holds one for a few instructions: who
 * waits spins, and then offers its processor.
 *
 * Each lock has a shelf of dead pools, the structs alone, for the next children of its parents: a request's
 * pools go with it, and the next one has as many, mostly with a parent at the same address. Which ones there
 * are is not in their own memory, for a program may use a dead pool by mistake. A shelf has 7 of 640 bytes.
 */
#include "apr_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/single_threaded.h>

#include "hoard.h"

enum { LOCK_BITS = 4, LOCKS = 1 << LOCK_BITS, SPINS = 100, SHELF = 7 };

struct list_lock {
    _Alignas(64) _Atomic unsigned held; /* a cache line each */
    unsigned number;                    /* of dead pools */
    apr_pool_t *dead[SHELF];
};

const struct reap_front pool_dead_reap; /* no handle of a reap: calls for it end with a line */

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
 * bits of the address. Where there is one thread it needs none: it makes no other meanwhile. */
static inline struct list_lock *take(const apr_pool_t *parent)
{
    uint64_t mixed = (uint64_t)(uintptr_t)parent * UINT64_C(0x9E3779B97F4A7C15);
    struct list_lock *chosen = &locks[mixed >> (64 - LOCK_BITS)];
    if (!__libc_single_threaded) lock(chosen);
    return chosen;
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

static inline void link_in(apr_pool_t *pool, apr_pool_t *parent)
{
    pool->parent = parent;
    pool->sibling = parent->child;
    if (pool->sibling) pool->sibling->ref = &pool->sibling;
    pool->ref = &parent->child;
    parent->child = pool;
}

static inline void unlink_from(apr_pool_t *pool)
{
    *pool->ref = pool->sibling;
    if (pool->sibling) pool->sibling->ref = pool->ref;
}

apr_pool_t *pool_tree_new(apr_pool_t *parent)
{
    struct list_lock *taken = take(parent);
    apr_pool_t *pool = taken->number ? taken->dead[--taken->number] : NULL;

    if (__builtin_expect(!pool, 0)) {
        unlock(taken); /* the backend may ask the kernel */
        pool = hoard_malloc(sizeof *pool);
        if (!pool) return NULL;
        take(parent);
    }
    pool->cleanups = NULL; /* a fork's child looks at these two before it runs another program */
    pool->child = NULL;
    link_in(pool, parent);
    unlock(taken);
    return pool;
}

void pool_tree_end(apr_pool_t *pool)
{
    struct list_lock *taken = take(pool->parent);
    bool fits = taken->number < SHELF;

    unlink_from(pool);
    pool->parent = NULL;
    pool->reap = (void *)&pool_dead_reap;
    if (fits) taken->dead[taken->number++] = pool;
    unlock(taken);
    if (!fits) hoard_free(pool);
}

void pool_tree_trim(void)
{
    for (int i = 0; i < LOCKS; i++)
        while (locks[i].number) hoard_free(locks[i].dead[--locks[i].number]);
}

void pool_tree_hand_up(apr_pool_t *pool)
{
    apr_pool_t *child;

    while ((child = pool->child)) {
        struct list_lock *taken = take(pool);
        unlink_from(child);
        child->parent = NULL;
        unlock(taken);
        if (!pool->parent) continue;
        taken = take(pool->parent);
        link_in(child, pool->parent);
        unlock(taken);
    }
}
