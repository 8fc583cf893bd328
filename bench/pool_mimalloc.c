/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on mimalloc's heaps. They do not nest, and clearing is destroying and making anew. */
#include <mimalloc.h>

struct pool {
    mi_heap_t *heap;
};

static inline void pool_begin(struct pool *root) { root->heap = mi_heap_new(); }

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    child->heap = mi_heap_new();
}

static inline void *pool_get(struct pool *pool, size_t size) { return mi_heap_malloc(pool->heap, size); }
static inline void pool_end(struct pool *pool) { mi_heap_destroy(pool->heap); }

static inline void pool_clear(struct pool *pool)
{
    mi_heap_destroy(pool->heap);
    pool->heap = mi_heap_new();
}

/* The end of a heap searches a list of all: 0.1 ms where there are 8000. */
#define POOL_FEW

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    (void)pool, (void)size;
    mi_free(object);
}

static inline void *pool_resize(struct pool *pool, void *object, size_t old, size_t size)
{
    (void)old;
    return mi_heap_realloc(pool->heap, object, size);
}

#define POOL_FREES_ELSEWHERE
static inline void pool_send(struct pool *pool, void *object) { (void)pool, (void)object; }
static inline void pool_put_elsewhere(struct pool *pool, void *object) { pool_put(pool, object, 0); }

/* Any thread may free, without a lock; none but the heap's may allocate. */
#define POOL_PASSES
static inline void pool_passed(struct pool *child, struct pool *parent) { pool_child(child, parent, 0); }
static inline void *pool_get_passed(struct pool *pool, size_t size) { return pool_get(pool, size); }
static inline void pool_put_passed(struct pool *pool, void *object) { pool_put(pool, object, 0); }

#include "pools_run.h"
