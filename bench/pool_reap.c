/* pools.h on reaps. */
#include <reap.h>

struct pool {
    void *reap;
};

static inline void pool_begin(struct pool *root) { reapCreate(&root->reap, NULL); }

static inline void pool_child(struct pool *child, struct pool *parent)
{
    reapCreate(&child->reap, &parent->reap);
}

static inline void *pool_get(struct pool *pool, size_t size) { return reapMalloc(&pool->reap, size); }
static inline void pool_clear(struct pool *pool) { reapFreeAll(&pool->reap); }
static inline void pool_end(struct pool *pool) { reapDestroy(&pool->reap); }

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object) { reapFree(&pool->reap, object); }

#include "pools.h"
