/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h on a pointer that is bumped, and nothing else: what writing to the objects costs by itself. A
 * yardstick beside the peers, and no region: there is one stretch of memory a thread that is never asked
 * whether it is full; a child begins where the pointer is, and its end puts the pointer back. So children
 * have to end in order.
 *
 * The pointer is in memory, as that of any pool is that is handed around: in a register, where the compiler
 * can have it for it sees all of this, clear would take half the time.
 */
#include <stdlib.h>
#include <sys/mman.h>

enum { STRETCH = 1024 * 1024 * 1024 }; /* addresses: what is not used is not there */

static _Thread_local char *bump;

struct pool {
    char *first;
};

static inline void pool_begin(struct pool *pool)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    pool->first = mmap(NULL, STRETCH, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (pool->first == MAP_FAILED) abort();
    bump = pool->first;
}
#define pool_of_thread(child, root) pool_begin(child)

static inline void pool_child(struct pool *child, struct pool *parent, int objects)
{
    (void)parent, (void)objects;
    child->first = bump;
}

static inline void *pool_get(struct pool *pool, size_t size)
{
    (void)pool;
    __asm__("" : "+m"(bump));
    void *object = bump;
    bump += (size + 15) & ~(size_t)15;
    return object;
}

static inline void pool_clear(struct pool *pool) { bump = pool->first; }
static inline void pool_end(struct pool *pool) { bump = pool->first; }

#include "pools.h"
