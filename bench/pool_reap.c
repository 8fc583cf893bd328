/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on reaps, linked to libreap-malloc: free() of an object goes to its reap, from any thread. */
#include <reap.h>
#include <stdlib.h>

struct pool {
    void *reap;
};

static inline void pool_begin(struct pool *root) { reapCreate(&root->reap, NULL); }

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)objects;
    reapCreate(&child->reap, &parent->reap);
}

static inline void *pool_get(struct pool *pool, size_t size) { return reapMalloc(&pool->reap, size); }
static inline void pool_clear(struct pool *pool) { reapFreeAll(&pool->reap); }
static inline void pool_end(struct pool *pool) { reapDestroy(&pool->reap); }

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    (void)size;
    reapFree(&pool->reap, object);
}

static inline void *pool_resize(struct pool *pool, void *object, size_t old, size_t size)
{
    (void)old;
    return reapRealloc(&pool->reap, object, size);
}

#define POOL_FREES_ELSEWHERE
static inline void pool_send(struct pool *pool, void *object) { (void)pool, (void)object; }
static inline void pool_put_elsewhere(struct pool *pool, void *object)
{
    (void)pool;
    free(object);
}

#define POOL_SHARES
static inline void pool_shared(struct pool *child, struct pool *parent)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    if (reapCreateWith(&child->reap, &parent->reap, &options) != 0) abort();
}
static inline void *pool_get_shared(struct pool *pool, size_t size) { return pool_get(pool, size); }

#define POOL_PASSES
static inline void pool_passed(struct pool *child, struct pool *parent) { pool_shared(child, parent); }
static inline void *pool_get_passed(struct pool *pool, size_t size) { return pool_get(pool, size); }
static inline void pool_put_passed(struct pool *pool, void *object) { reapFree(&pool->reap, object); }

#define POOL_STACKS
struct mark {
    reap_mark mark;
};
static inline void pool_mark(struct pool *pool, struct mark *mark) { reapMark(&pool->reap, &mark->mark); }
static inline void pool_release(struct pool *pool, struct mark *mark)
{
    reapRewind(&pool->reap, &mark->mark);
    reapUnmark(&pool->reap, &mark->mark);
}
static inline void *pool_resize_last(struct pool *pool, void *object, size_t old, size_t size)
{
    return pool_resize(pool, object, old, size);
}
static inline void pool_put_last(struct pool *pool, void *object) { reapFree(&pool->reap, object); }

#define POOL_BUILDS
struct builder {
    reap_builder builder;
};
static inline void pool_append(struct pool *pool, struct builder *builder, const char *bytes, size_t n)
{
    if (reapAppend(&pool->reap, &builder->builder, bytes, n) != 0) abort();
}
static inline char *pool_built(struct pool *pool, struct builder *builder)
{
    return reapFinish(&pool->reap, &builder->builder);
}

#define POOL_LIMITS
static inline void pool_limited(struct pool *child, struct pool *parent, size_t bytes)
{
    struct reap_options options = {.size = sizeof options, .limit = bytes};
    if (reapCreateWith(&child->reap, &parent->reap, &options) != 0) abort();
}

#define POOL_HELD
static inline size_t pool_held(struct pool *pool) { return reapHeldBytes(&pool->reap); }

#include "pools_run.h"
