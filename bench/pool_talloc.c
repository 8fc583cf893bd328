/* pools.h on talloc: a context is an object without bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <talloc.h>

struct pool {
    void *context;
};

static inline void pool_begin(struct pool *root) { root->context = talloc_new(NULL); }

static inline void pool_child(struct pool *child, struct pool *parent)
{
    child->context = talloc_new(parent->context);
}

static inline void *pool_get(struct pool *pool, size_t size) { return talloc_size(pool->context, size); }
static inline void pool_clear(struct pool *pool) { talloc_free_children(pool->context); }
static inline void pool_end(struct pool *pool) { talloc_free(pool->context); }

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object)
{
    (void)pool;
    talloc_free(object);
}

static inline void *pool_resize(struct pool *pool, void *object, size_t size)
{
    return talloc_realloc_size(pool->context, object, size);
}

#include "pools.h"
