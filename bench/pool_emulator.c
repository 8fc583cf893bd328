/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on malloc and free, with an emulator of regions as Berger has it (thesis 2002, 5.1.1): an array
 * beside each region has its objects' addresses, and the region's end frees each of them. So any malloc
 * that is preloaded runs the programs of regions.
 *
 *     struct pool         addresses, in the order of allocation
 *     +---------+        +---+---+---+---------+
 *     | objects |------->|   |   |   |  room   |
 *     | n, room |        +---+---+---+---------+
 *     +---------+
 *
 * What it costs: 8 bytes for each object (4 in the thesis, of 32 bits), up to as much again while the array
 * doubles, and what the malloc has for each, 8 to 16 bytes of header or of rounding up; and a free for each
 * object, which a region does not need. What it does not: it writes into no object and reads none, so the
 * last one to use an object is the program (pool_malloc.c has its list in the objects). A region that is
 * nested ends by a call of its own.
 *
 * Objects end newest first: where a region has 16 MB, glibc's malloc needs half the time that it needs for
 * oldest first. An obstack's marks are places in the array. Objects that a program frees itself are
 * malloc's alone, as they were where the thesis had its programs call malloc (5.4.1).
 */
#include <stdlib.h>

enum { RECORDS_FIRST = 16 };

struct pool {
    void **objects;
    size_t n, room;
};

static inline void pool_begin(struct pool *root) { *root = (struct pool){NULL, 0, 0}; }

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    pool_begin(child);
}

__attribute__((noinline)) static void pool_room(struct pool *pool)
{
    pool->room = pool->room > 0 ? 2 * pool->room : RECORDS_FIRST;
    pool->objects = realloc(pool->objects, pool->room * sizeof *pool->objects);
    if (!pool->objects) abort();
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    if (pool->n == pool->room) pool_room(pool);
    return pool->objects[pool->n++] = malloc(size);
}

static inline void pool_cut(struct pool *pool, size_t n)
{
    while (pool->n > n) free(pool->objects[--pool->n]);
}

static inline void pool_clear(struct pool *pool) { pool_cut(pool, 0); }

static inline void pool_end(struct pool *pool)
{
    pool_clear(pool);
    free(pool->objects);
}

#define POOL_STACKS
struct mark {
    size_t n;
};
static inline void pool_mark(struct pool *pool, struct mark *mark) { mark->n = pool->n; }
static inline void pool_release(struct pool *pool, struct mark *mark) { pool_cut(pool, mark->n); }
static inline void *pool_resize_last(struct pool *pool, void *object, size_t old, size_t size)
{
    (void)old;
    return pool->objects[pool->n - 1] = realloc(object, size);
}
static inline void pool_put_last(struct pool *pool, void *object)
{
    (void)object;
    pool_cut(pool, pool->n - 1);
}

#define POOL_PLAIN
static inline void *pool_new(struct pool *pool, size_t size)
{
    (void)pool;
    return malloc(size);
}
static inline void pool_delete(struct pool *pool, void *object, size_t size)
{
    (void)pool, (void)size;
    free(object);
}

#include "pools_run.h"
