/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_tree.c: the lists of children, and their locks.
 *
 * A list is guarded by one of a few locks, chosen by the parent's address, rather than by one in
 * each pool: so few can be taken around fork, and a forked child, whose other threads are gone,
 * finds every list whole and every lock free. No more than one is ever held otherwise, and nothing
 * is called under it, so that they have no rank to keep.
 */
#include "apr_pool.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/single_threaded.h>

enum { LOCK_BITS = 4, LOCKS = 1 << LOCK_BITS };

static struct {
    _Alignas(64) pthread_mutex_t mutex; /* a cache line each */
} locks[LOCKS] = {[0 ... LOCKS - 1] = {PTHREAD_MUTEX_INITIALIZER}};

/* Takes the lock of a parent's list, which the high bits of a product choose, since they depend on all
 * bits of the address. NULL where there is one thread, which needs none: it makes no other meanwhile. */
static pthread_mutex_t *take(const apr_pool_t *parent)
{
    uint64_t mixed = (uint64_t)(uintptr_t)parent * UINT64_C(0x9E3779B97F4A7C15);
    pthread_mutex_t *mutex = &locks[mixed >> (64 - LOCK_BITS)].mutex;

    if (__libc_single_threaded) return NULL;
    pthread_mutex_lock(mutex);
    return mutex;
}

static void release(pthread_mutex_t *mutex)
{
    if (mutex) pthread_mutex_unlock(mutex);
}

static void take_all(void)
{
    for (int i = 0; i < LOCKS; i++) pthread_mutex_lock(&locks[i].mutex);
}

static void release_all(void)
{
    for (int i = LOCKS; i-- > 0;) pthread_mutex_unlock(&locks[i].mutex);
}

void pool_tree_prepare_for_fork(void)
{
    pthread_atfork(take_all, release_all, release_all);
}

void pool_tree_link(apr_pool_t *pool, apr_pool_t *parent)
{
    pthread_mutex_t *taken = take(parent);

    pool->parent = parent;
    pool->sibling = parent->child;
    if (pool->sibling) pool->sibling->ref = &pool->sibling;
    pool->ref = &parent->child;
    parent->child = pool;
    release(taken);
}

void pool_tree_unlink(apr_pool_t *pool)
{
    pthread_mutex_t *taken = take(pool->parent);

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
