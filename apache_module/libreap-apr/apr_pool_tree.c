/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_tree.c: the lists of children, where a thread waits for a lock or for memory. */
#include "apr_pool_tree.h"

#include <pthread.h>
#include <sched.h>

enum { SPINS = 100 };

/* At a place that no reap has: elsewhere reapMalloc would read what a reap has behind its front. */
_Alignas(256) const struct reap_front pool_dead_reap;

struct pool_list_lock *pool_locks;

bool pool_tree_start(void)
{
    _Static_assert(sizeof(apr_pool_t) >= POOL_LOCKS * sizeof *pool_locks, "they lie beside the first pools");
    if (!pool_locks) pool_locks = hoard_aligned_alloc(64, sizeof(apr_pool_t));
    if (pool_locks) memset(pool_locks, 0, sizeof(apr_pool_t));
    return pool_locks != NULL;
}

static void lock(struct pool_list_lock *lock)
{
    for (unsigned spins = 0; atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) != 0;)
        while (atomic_load_explicit(&lock->held, memory_order_relaxed) != 0)
            if (++spins > SPINS) sched_yield();
}

/* Takes the lock of a parent's list. */
static struct pool_list_lock *take(const apr_pool_t *parent)
{
    struct pool_list_lock *chosen = pool_lock_of(parent);
    if (!__libc_single_threaded) lock(chosen);
    return chosen;
}

static void take_all(void)
{
    for (int i = 0; i < POOL_LOCKS; i++) lock(&pool_locks[i]);
}

static void release_all(void)
{
    for (int i = POOL_LOCKS; i-- > 0;) pool_unlock(&pool_locks[i]);
}

void pool_tree_prepare_for_fork(void) { pthread_atfork(take_all, release_all, release_all); }

apr_pool_t *pool_tree_new(apr_pool_t *parent, apr_abortfunc_t abort_fn, apr_allocator_t *allocator)
{
    struct pool_list_lock *taken = take(parent);
    apr_pool_t *pool = taken->number ? taken->dead[--taken->number] : NULL;
    if (!pool) {
        pool_unlock(taken); /* the backend may ask the kernel */
        pool = hoard_malloc(sizeof *pool);
        if (!pool) return NULL;
        take(parent);
    }
    pool_begin(pool, abort_fn, allocator);
    pool_link(pool, parent);
    pool_unlock(taken);
    return pool;
}

void pool_tree_end_slow(apr_pool_t *pool) { pool_tree_end_locked(take(pool->parent), pool); }

void pool_tree_trim(void)
{
    for (int i = 0; i < POOL_LOCKS; i++)
        while (pool_locks[i].number) hoard_free(pool_locks[i].dead[--pool_locks[i].number]);
}

void pool_tree_hand_up(apr_pool_t *pool)
{
    for (apr_pool_t *child; (child = pool->child);) {
        struct pool_list_lock *taken = take(pool);
        pool_unlink(child);
        child->parent = NULL;
        pool_unlock(taken);
        if (!pool->parent) continue;
        taken = take(pool->parent);
        pool_link(child, pool->parent);
        pool_unlock(taken);
    }
}
