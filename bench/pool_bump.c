/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on a pointer that is bumped, and nothing else: what is left is the workload's own cost, of drawing,
 * writing and reading. A yardstick beside the peers, and no region: a stretch of memory, which is never
 * asked whether it is full. One child at a time begins where the last one began; where many are alive, each
 * has a place in the stretch for the objects that it is told of.
 *
 * Single objects that are freed go to a list of their size, in steps of 16 bytes or, of the larger ones, half
 * a power of two: nothing is checked, joined or given back.
 *
 * The pointer is in memory, as that of any pool is that is handed around: in a register, where the compiler
 * can have it for it sees all of this, clear would take half the time.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    OBJECT_MOST = 128,
    FREEING_ROOM = 32 * 1024, /* objects, where none are told */
    STEP = 16,
    LISTED_SMALL = 1024,
    LISTS = LISTED_SMALL / STEP + 2 * 16
};
static const size_t STRETCH = (size_t)4 << 30; /* addresses: what is not used is not there */

static _Thread_local char *unused;
static _Thread_local bool many;

struct pool {
    char *bump, *first;
    int room; /* of many: for this number of objects */
    bool frees;
    void *lists[LISTS];
};

#define POOL_TOLD
#define pool_many(many_) (many = (many_))

static inline void pool_begin(struct pool *pool)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unused = mmap(NULL, STRETCH, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (unused == MAP_FAILED) abort();
    pool->first = pool->bump = unused;
}
#define pool_of_thread(child, root) pool_begin(child)

/* The place that a pool comes back to, if it is large enough. */
static inline void pool_place(struct pool *child, int objects)
{
    __asm__("" : "+m"(child->room)); /* zero at first: struct pools of many are in a table of zeros */
    if (objects > child->room) {
        child->room = objects;
        child->first = unused;
        unused += (size_t)(objects + 1) * OBJECT_MOST;
    }
}

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent;
    child->frees = objects == 0;
    if (many)
        pool_place(child, child->frees ? FREEING_ROOM : objects);
    else
        child->first = unused;
    child->bump = child->first;
    if (child->frees) memset(child->lists, 0, sizeof child->lists);
}

/* Rounds a size up to what its list has. */
static inline size_t rounded_up(size_t size)
{
    size_t step = STEP;
    if (size > LISTED_SMALL) step = (size_t)1 << (63 - __builtin_clzl(size - 1) - 1);
    return (size + step - 1) & ~(step - 1);
}

static inline void **list_of(struct pool *pool, size_t size)
{
    if (size <= LISTED_SMALL) return &pool->lists[(size - 1) / STEP];
    int power = 63 - __builtin_clzl(size - 1); /* from 10 */
    return &pool->lists[LISTED_SMALL / STEP + 2 * (power - 10) + (int)((size - 1) >> (power - 1)) - 2];
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    if (__builtin_expect(pool->frees, 0)) {
        void **list = list_of(pool, size), *object = *list;
        if (object) {
            memcpy(list, object, sizeof *list);
            return object;
        }
        size = rounded_up(size);
    }
    __asm__("" : "+m"(pool->bump));
    void *object = pool->bump;
    pool->bump += (size + 15) & ~(size_t)15;
    return object;
}

static inline void pool_clear(struct pool *pool) { pool->bump = pool->first; }
static inline void pool_end(struct pool *pool) { pool_clear(pool); }

#define POOL_ALONE
#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    void **list = list_of(pool, size);
    memcpy(object, list, sizeof *list);
    *list = object;
}

static inline void *pool_resize(struct pool *pool, void *object, size_t old, size_t size)
{
    void *moved = pool_get(pool, size);
    memcpy(moved, object, old < size ? old : size);
    pool_put(pool, object, old);
    return moved;
}

#include "pools_run.h"
