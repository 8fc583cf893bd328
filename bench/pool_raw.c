/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on a region as one writes it by hand, for the least that a region can cost: a yardstick beside the
 * peers. Objects are aligned to 16; chunks come from malloc and double from 8 KiB to 1 MiB, as a reap's do.
 *
 *     struct pool          chunk, the oldest of its list
 *     +----------+        +-----------------------+        +----------------+
 *     | first    |------->| newer, end | objects  |------->| NULL, end |    |
 *     | bump,end |  in current, the newest that is used; those after it were kept by a clear
 *     +----------+
 *
 * A chunk of a region that ends waits for the next one, in a list of its size: free() would give the larger
 * ones back to the system. There is nothing else: no hierarchy, nothing is freed alone, checked, counted or
 * limited, and no memory goes back.
 */
#include <stdlib.h>

enum { FIRST_CHUNK = 8 * 1024, LAST_CHUNK = 1024 * 1024, CHUNK_SIZES = 8 };

struct chunk {
    struct chunk *newer;
    char *end;
};

struct pool {
    char *bump, *end;
    struct chunk *first, *current;
};

/* Bumps in a chunk, which may be NULL. */
static inline void pool_enter(struct pool *pool, struct chunk *chunk)
{
    pool->current = chunk;
    pool->bump = chunk ? (char *)(chunk + 1) : NULL;
    pool->end = chunk ? chunk->end : NULL;
}

static inline void pool_begin(struct pool *pool)
{
    pool->first = NULL;
    pool_enter(pool, NULL);
}

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    pool_begin(child);
}

static _Thread_local struct chunk *waiting[CHUNK_SIZES];

/* The list for chunks of this size, NULL if it has none. */
static struct chunk **waiting_of(size_t bytes)
{
    int i = __builtin_ctzl(bytes) - __builtin_ctz(FIRST_CHUNK);
    return (bytes & (bytes - 1)) == 0 && i >= 0 && i < CHUNK_SIZES ? &waiting[i] : NULL;
}

static inline size_t chunk_bytes(const struct chunk *chunk)
{
    return (size_t)(chunk->end - (const char *)chunk);
}

static struct chunk *chunk_new(const struct chunk *older, size_t size)
{
    size_t bytes = older ? 2 * chunk_bytes(older) : FIRST_CHUNK;
    if (bytes > LAST_CHUNK) bytes = LAST_CHUNK;
    if (bytes < sizeof(struct chunk) + size) bytes = sizeof(struct chunk) + size;
    struct chunk **list = waiting_of(bytes), *chunk = list ? *list : NULL;
    if (chunk)
        *list = chunk->newer;
    else
        chunk = malloc(bytes);
    if (chunk) *chunk = (struct chunk){.newer = NULL, .end = (char *)chunk + bytes};
    return chunk;
}

/* The next chunk, one that a clear kept or a new one. */
__attribute__((noinline)) static void *pool_get_slowly(struct pool *pool, size_t size)
{
    struct chunk **next = pool->current ? &pool->current->newer : &pool->first;
    while (*next && (size_t)((*next)->end - (char *)(*next + 1)) < size) next = &(*next)->newer;
    if (!*next && !(*next = chunk_new(pool->current, size))) return NULL;
    pool_enter(pool, *next);
    void *object = pool->bump;
    pool->bump += size;
    return object;
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (__builtin_expect(size > (size_t)(pool->end - pool->bump), 0)) return pool_get_slowly(pool, size);
    void *object = pool->bump;
    pool->bump += size;
    return object;
}

static inline void pool_clear(struct pool *pool) { pool_enter(pool, pool->first); }

static inline void pool_end(struct pool *pool)
{
    for (struct chunk *chunk = pool->first, *newer; chunk; chunk = newer) {
        struct chunk **list = waiting_of(chunk_bytes(chunk));
        newer = chunk->newer;
        if (!list) {
            free(chunk);
            continue;
        }
        chunk->newer = *list;
        *list = chunk;
    }
}

#include "pools_run.h"
