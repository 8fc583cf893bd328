/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on free lists by size, which boxed-sim had for the workload `boxed`, after what Berger tells of
 * per-class allocators (thesis 2002, 5.2.2): an object that is freed goes to the list of its size, and a
 * new one comes from there, or is cut from a chunk. Nothing is joined, and a list serves no other size; an
 * object has no header, so the program says its size. Larger objects are malloc's, which is not told when
 * the pool ends.
 */
#include <stdlib.h>
#include <string.h>

enum { CLASS_MOST = 256, CLASS_STEP = 8, CLASS_CHUNK = 8 * 1024 };

struct pool {
    char *bump, *end;
    struct class_chunk {
        struct class_chunk *older;
        char *unused; /* objects are aligned to 16 */
    } * chunks;
    void *freed[CLASS_MOST / CLASS_STEP + 1];
};

static inline void pool_begin(struct pool *root) { memset(root, 0, sizeof *root); }

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    pool_begin(child);
}

static inline void pool_end(struct pool *pool)
{
    for (struct class_chunk *chunk = pool->chunks, *older; chunk; chunk = older) {
        older = chunk->older;
        free(chunk);
    }
}

static inline void pool_clear(struct pool *pool)
{
    pool_end(pool);
    pool_begin(pool);
}

__attribute__((noinline)) static void pool_chunk(struct pool *pool)
{
    struct class_chunk *chunk = malloc(CLASS_CHUNK);
    if (!chunk) abort();
    chunk->older = pool->chunks;
    pool->chunks = chunk;
    pool->bump = (char *)(chunk + 1);
    pool->end = (char *)chunk + CLASS_CHUNK;
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    size = (size + CLASS_STEP - 1) / CLASS_STEP * CLASS_STEP;
    if (size > CLASS_MOST) return malloc(size);
    void **freed = &pool->freed[size / CLASS_STEP], *object = *freed;
    if (object) {
        memcpy(freed, object, sizeof *freed);
        return object;
    }
    if ((size_t)(pool->end - pool->bump) < size) pool_chunk(pool);
    object = pool->bump;
    pool->bump += size;
    return object;
}

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    size = (size + CLASS_STEP - 1) / CLASS_STEP * CLASS_STEP;
    if (size > CLASS_MOST) {
        free(object);
        return;
    }
    memcpy(object, &pool->freed[size / CLASS_STEP], sizeof object);
    pool->freed[size / CLASS_STEP] = object;
}

static inline void *pool_resize(struct pool *pool, void *object, size_t old, size_t size)
{
    void *longer = memcpy(pool_get(pool, size), object, old < size ? old : size);
    pool_put(pool, object, old);
    return longer;
}

#include "pools_run.h"
