/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on glibc's obstacks, whose chunks come from malloc. They do not nest. */
#include <obstack.h>
#include <stdlib.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

struct pool {
    struct obstack stack;
    void *first; /* freeing it clears */
};

static inline void pool_begin(struct pool *root)
{
    obstack_init(&root->stack);
    root->first = obstack_alloc(&root->stack, 0);
}

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    pool_begin(child);
}

static inline void *pool_get(struct pool *pool, size_t size) { return obstack_alloc(&pool->stack, size); }

static inline void pool_clear(struct pool *pool)
{
    obstack_free(&pool->stack, pool->first);
    pool->first = obstack_alloc(&pool->stack, 0);
}

static inline void pool_end(struct pool *pool) { obstack_free(&pool->stack, NULL); }

#define POOL_STACKS
struct mark {
    void *object;
};
static inline void pool_mark(struct pool *pool, struct mark *mark)
{
    mark->object = obstack_alloc(&pool->stack, 0);
}
static inline void pool_release(struct pool *pool, struct mark *mark)
{
    obstack_free(&pool->stack, mark->object);
}
static inline void pool_put_last(struct pool *pool, void *object) { obstack_free(&pool->stack, object); }

#define POOL_GROWS
struct growing {
    char unused;
};
#define pool_grow(pool, growing, byte) ((void)(growing), obstack_1grow(&(pool)->stack, byte))
#define pool_grown(pool, growing) ((void)(growing), (char *)obstack_finish(&(pool)->stack))

#include "pools_run.h"
