/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on talloc: a context is an object without bytes. With TALLOC_POOLS it is a pool of talloc's with
 * room for the objects that it is told of; those that find none come from malloc. Such a pool frees nothing
 * before all of it is free, so it is not one of those that free. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <talloc.h>

struct pool {
    void *context;
};

static inline void pool_begin(struct pool *root) { root->context = talloc_new(NULL); }

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
#ifdef TALLOC_POOLS
    enum { MEAN = 72 + 8 }; /* of 16 to 128 bytes, rounded up */
    child->context = talloc_pooled_object(parent->context, char, objects, (size_t)objects *MEAN);
#else
    (void)objects;
    child->context = talloc_new(parent->context);
#endif
}

/* A tree of contexts is for one thread at a time. */
#define pool_of_thread(child, root) pool_begin(child)

static inline void *pool_get(struct pool *pool, size_t size) { return talloc_size(pool->context, size); }
static inline void pool_clear(struct pool *pool) { talloc_free_children(pool->context); }
static inline void pool_end(struct pool *pool) { talloc_free(pool->context); }

/* Deprecated, with no other call in its place. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define POOL_LIMITS
static inline void pool_limited(struct pool *child, struct pool *parent, size_t bytes)
{
    pool_child(child, parent, 100);
    if (talloc_set_memlimit(child->context, bytes) != 0) abort();
}

#define POOL_HELD
static inline size_t pool_held(struct pool *pool) { return talloc_total_size(pool->context); }

#ifndef TALLOC_POOLS
#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    (void)pool, (void)size;
    talloc_free(object);
}

static inline void *pool_resize(struct pool *pool, void *object, size_t old, size_t size)
{
    (void)old;
    return talloc_realloc_size(pool->context, object, size);
}

/* With a lock two threads may use one tree. */
#define POOL_PASSES
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static inline void pool_passed(struct pool *child, struct pool *parent) { pool_child(child, parent, 0); }
static inline void *pool_get_passed(struct pool *pool, size_t size)
{
    pthread_mutex_lock(&pool_lock);
    void *object = pool_get(pool, size);
    pthread_mutex_unlock(&pool_lock);
    return object;
}
static inline void pool_put_passed(struct pool *pool, void *object)
{
    pthread_mutex_lock(&pool_lock);
    pool_put(pool, object, 0);
    pthread_mutex_unlock(&pool_lock);
}
#endif

#include "pools_run.h"
