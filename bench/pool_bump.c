/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on a pointer that is bumped, and nothing else: what is left is the workload's own cost, of drawing,
 * writing and reading. A yardstick beside the peers, and no region: there is one stretch of memory a thread
 * that is never asked whether it is full; a child begins where the pointer is, and its end puts the pointer
 * back. So children have to end in order; where many are alive, and the first of them ends first, each has a
 * place that it comes back to.
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
    STRETCH = 1024 * 1024 * 1024, /* addresses: what is not used is not there */
    OBJECT_MOST = 128,
    STEP = 16, LISTED_SMALL = 1024, LISTS = LISTED_SMALL / STEP + 2 * 16
};

static _Thread_local char *bump, *unused;
static _Thread_local void *lists[LISTS];
static _Thread_local bool listed;
static _Thread_local bool many;

struct pool {
    char *first;
    int room; /* of many: for so many objects */
};

#define pool_many(many_) (many = (many_))

static inline void pool_begin(struct pool *pool)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    pool->first = mmap(NULL, STRETCH, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (pool->first == MAP_FAILED) abort();
    bump = unused = pool->first;
}
#define pool_of_thread(child, root) pool_begin(child)

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent;
    if (many) {
        __asm__("" : "+m"(child->room)); /* zero at first: struct pools of many are in a table of zeros */
        if (objects > child->room) {
            *child = (struct pool){.first = unused, .room = objects};
            unused += (size_t)(objects + 1) * OBJECT_MOST;
        }
        bump = child->first;
    } else {
        child->first = bump;
    }
    listed = objects == 0;
}

/* Rounds a size up to what its list has. */
static inline size_t rounded_up(size_t size)
{
    size_t step = STEP;
    if (size > LISTED_SMALL) step = (size_t)1 << (63 - __builtin_clzl(size - 1) - 1);
    return (size + step - 1) & ~(step - 1);
}

static inline void **list_of(size_t size)
{
    if (size <= LISTED_SMALL) return &lists[(size - 1) / STEP];
    int power = 63 - __builtin_clzl(size - 1); /* from 10 */
    return &lists[LISTED_SMALL / STEP + 2 * (power - 10) + (int)((size - 1) >> (power - 1)) - 2];
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    (void)pool;
    if (__builtin_expect(listed, 0)) {
        void **list = list_of(size), *object = *list;
        if (object) {
            memcpy(list, object, sizeof *list);
            return object;
        }
        size = rounded_up(size);
    }
    __asm__("" : "+m"(bump));
    void *object = bump;
    bump += (size + 15) & ~(size_t)15;
    return object;
}

static inline void pool_clear(struct pool *pool) { bump = pool->first; }

static inline void pool_end(struct pool *pool)
{
    bump = pool->first;
    if (listed) memset(lists, 0, sizeof lists);
    listed = false;
}

#define POOL_FREES
static inline void pool_put(struct pool *pool, void *object, size_t size)
{
    void **list = list_of(size);
    (void)pool;
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

#include "pools.h"
