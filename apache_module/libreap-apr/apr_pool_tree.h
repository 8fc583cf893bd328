/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_tree.h: the lists of children, their locks, and dead pools for the next ones.
 *
 * One of a few locks guards a list, by the parent's address: so few can be taken around fork, and a forked
 * child, whose other threads are gone, finds every list whole and every lock free. Else no more than one is
 * held, for a few instructions, and nothing is called under it. Who waits spins, and then offers its
 * processor.
 *
 * Each lock has a shelf of 7 dead pools, the structs alone, for the next children of its parents: a request's
 * pools go with it, and the next one has as many. Which ones there are is not in their own memory, for a
 * program may use a dead pool by mistake. The locks are as large as a pool: so they lie on the page of the
 * first pools, to which a forked child writes in any case.
 *
 * What is inline here calls nothing but at its end, so that apr_pool_create_ex and apr_pool_destroy save no
 * registers.
 */
#ifndef APR_POOL_TREE_H
#define APR_POOL_TREE_H

#include <stdatomic.h>
#include <sys/single_threaded.h>

#include "apr_pool.h"
#include "hoard.h"

enum { POOL_LOCKS = 8, POOL_SHELF = 7 };

struct pool_list_lock {
    _Alignas(64) _Atomic unsigned held; /* a cache line each */
    unsigned number;                    /* of dead pools */
    apr_pool_t *dead[POOL_SHELF];
};
extern struct pool_list_lock *pool_locks;

/* Makes them, before the first pool. False: no memory. */
bool pool_tree_start(void);

/* Has fork take the locks of the lists, so that a child finds them free. Called once. */
void pool_tree_prepare_for_fork(void);

/* The lock of a parent's list. A pool has five times 128 bytes: so neighbours have different ones. (An index
 * would be computed for each field.) */
static inline struct pool_list_lock *pool_lock_of(const apr_pool_t *parent)
{
    size_t number = (uintptr_t)parent / 128 % POOL_LOCKS;
    return (void *)((char *)pool_locks + number * sizeof *pool_locks);
}

/* Takes a lock, if it is free. Where there is one thread it needs none: it makes no other meanwhile. */
static inline bool pool_lock_try(struct pool_list_lock *lock)
{
    return __libc_single_threaded || atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) == 0;
}

static inline void pool_unlock(struct pool_list_lock *lock)
{
    atomic_store_explicit(&lock->held, 0, memory_order_release);
}

static inline void pool_link(apr_pool_t *pool, apr_pool_t *parent)
{
    pool->parent = parent;
    pool->sibling = parent->child;
    if (pool->sibling) pool->sibling->ref = &pool->sibling;
    pool->ref = &parent->child;
    parent->child = pool;
}

static inline void pool_unlink(apr_pool_t *pool)
{
    *pool->ref = pool->sibling;
    if (pool->sibling) pool->sibling->ref = pool->ref;
}

/* Makes the newest child of parent, without a reap yet. NULL: no memory. */
apr_pool_t *pool_tree_new(apr_pool_t *parent, apr_abortfunc_t abort_fn, apr_allocator_t *allocator);

/* The same of a dead pool. NULL: there is none, or another thread has the lock. */
static inline apr_pool_t *pool_tree_new_again(apr_pool_t *parent, apr_abortfunc_t abort_fn,
                                              apr_allocator_t *allocator)
{
    struct pool_list_lock *lock = pool_lock_of(parent);
    if (!pool_lock_try(lock)) return NULL;
    if (__builtin_expect(lock->number == 0, 0)) {
        pool_unlock(lock);
        return NULL;
    }
    apr_pool_t *pool = lock->dead[--lock->number];
    pool_begin(pool, abort_fn, allocator);
    pool_link(pool, parent);
    pool_unlock(lock);
    return pool;
}

/* Takes a pool that has ended, under the lock, out of its parent's list. It is kept, or freed. */
static inline void pool_tree_end_locked(struct pool_list_lock *lock, apr_pool_t *pool)
{
    pool_unlink(pool);
    pool->parent = NULL;
    pool_set_dead(pool);
    if (__builtin_expect(lock->number == POOL_SHELF, 0)) {
        pool_unlock(lock);
        hoard_free(pool);
        return;
    }
    lock->dead[lock->number++] = pool;
    pool_unlock(lock);
}

/* Does so with any child, if another thread has the lock. */
void pool_tree_end_slow(apr_pool_t *pool);

static inline void pool_tree_end(apr_pool_t *pool)
{
    struct pool_list_lock *lock = pool_lock_of(pool->parent);
    if (__builtin_expect(pool_lock_try(lock), 1))
        pool_tree_end_locked(lock, pool);
    else
        pool_tree_end_slow(pool);
}

/* Frees all pools that are kept. No other thread uses pools. */
void pool_tree_trim(void);

/* Makes all children of pool children of its parent; or roots, when it has none. */
void pool_tree_hand_up(apr_pool_t *pool);

#endif
