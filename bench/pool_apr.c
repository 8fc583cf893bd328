/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on APR's pools. The root has an allocator of its own without a mutex, as httpd gives its
 * connections: with the global pool's, each chunk would cost a lock. */
#include <apr_allocator.h>
#include <apr_general.h>
#include <apr_pools.h>
#include <pthread.h>

struct pool {
    apr_pool_t *pool;
};

static inline void pool_with_allocator(struct pool *pool)
{
    apr_allocator_t *allocator = NULL;
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&pool->pool, NULL, NULL, allocator);
    apr_allocator_owner_set(allocator, pool->pool);
}

static inline void pool_begin(struct pool *root)
{
    apr_initialize();
    pool_with_allocator(root);
}

/* Below APR's own root, whose list of children has a lock: that of ours has none. */
#define pool_of_thread(child, root) pool_with_allocator(child)

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)objects;
    apr_pool_create(&child->pool, parent->pool);
}

static inline void *pool_get(struct pool *pool, size_t size) { return apr_palloc(pool->pool, size); }
static inline void pool_clear(struct pool *pool) { apr_pool_clear(pool->pool); }
static inline void pool_end(struct pool *pool) { apr_pool_destroy(pool->pool); }

/* apr_palloc takes no lock of its own. */
#define POOL_SHARES
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static inline void pool_shared(struct pool *child, struct pool *parent) { pool_child(child, parent, 0); }
static inline void *pool_get_shared(struct pool *pool, size_t size)
{
    pthread_mutex_lock(&pool_lock);
    void *object = pool_get(pool, size);
    pthread_mutex_unlock(&pool_lock);
    return object;
}

#include "pools_run.h"
