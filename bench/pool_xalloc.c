/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on the allocator that 197.parser had, for the workload `parser`, after what Berger tells of it
 * (thesis 2002, 4.2.1): 30 MB, of which the next object is behind the last one that is in use. A freed
 * object is marked; if it is the last, it goes, and so do marked ones before it. To free all is to begin
 * anew. Memory in front of an object that lives long is not used again, and the program ends when 30 MB are
 * not enough.
 *
 *     +--------+--------+  +--------+--------+
 *     | before | object |  | before | object |  bump ...    before: where the object before begins, and
 *     +--------+--------+  +--------+--------+              whether this one is free
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { XALLOC_BYTES = 30 * 1000 * 1000 };

struct header {
    struct header *before;
    size_t is_free;
};

struct pool {
    char *memory, *bump;
    struct header *last;
};

static inline void pool_clear(struct pool *pool)
{
    pool->bump = pool->memory;
    pool->last = NULL;
}

static inline void pool_begin(struct pool *root)
{
    root->memory = malloc(XALLOC_BYTES);
    if (!root->memory) abort();
    pool_clear(root);
}

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    pool_begin(child);
}

static inline void pool_end(struct pool *pool) { free(pool->memory); }

static inline void *pool_get(struct pool *pool, size_t size)
{
    struct header *header = (struct header *)(void *)pool->bump;
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(pool->memory + XALLOC_BYTES - pool->bump) < sizeof *header + size) {
        fprintf(stderr, "xalloc: %d bytes are not enough\n", XALLOC_BYTES);
        exit(1);
    }
    *header = (struct header){pool->last, 0};
    pool->last = header;
    pool->bump += sizeof *header + size;
    return header + 1;
}

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    (void)size;
    ((struct header *)object - 1)->is_free = 1;
    for (; pool->last && pool->last->is_free; pool->last = pool->last->before)
        pool->bump = (char *)pool->last;
}

static inline void *pool_resize(struct pool *pool, void *object, size_t old, size_t size)
{
    void *longer = memcpy(pool_get(pool, size), object, old < size ? old : size);
    pool_put(pool, object, old);
    return longer;
}

#include "pools_run.h"
