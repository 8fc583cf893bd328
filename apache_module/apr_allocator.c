/* SPDX-License-Identifier: Apache-2.0 */
/* apr_allocator.c: memory nodes, for those who use apr_allocator_t directly.
 *
 * Pools here do not: their chunks are their reap's. Bucket allocators do, and read the node's fields,
 * which are public:
 *
 *     node                                                       node + (index + 1) pages
 *     | apr_memnode_t | first_avail ...                          | endp
 *
 * A node comes from hoard and goes back to it at once, so that an allocator holds no memory of its
 * own: every max_free is kept, and no mutex is needed. The one that is set is only remembered.
 */
#include "apr_pool.h"

#include <unistd.h>

#include "hoard.h"

apr_status_t apr_allocator_create(apr_allocator_t **allocator)
{
    *allocator = hoard_calloc(1, sizeof **allocator);
    return *allocator ? APR_SUCCESS : APR_ENOMEM;
}

void apr_allocator_destroy(apr_allocator_t *allocator)
{
    hoard_free(allocator);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static apr_size_t page_size(void)
{
    static apr_size_t bytes; /* the same for whoever sets it */

    if (!bytes) bytes = (apr_size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

/* Whole pages, two at least, for size bytes and the node itself; 0 when there is no such number. */
apr_size_t apr_allocator_align(apr_allocator_t *allocator, apr_size_t size)
{
    apr_size_t page = page_size();
    apr_size_t total = (size + APR_MEMNODE_T_SIZE + page - 1) & ~(page - 1);

    (void)allocator;
    if (total < size) return 0;
    return total < 2 * page ? 2 * page : total;
}

apr_memnode_t *apr_allocator_alloc(apr_allocator_t *allocator, apr_size_t size)
{
    apr_size_t total = apr_allocator_align(allocator, size);
    apr_size_t index = total / page_size() - 1;
    apr_memnode_t *node;

    if (total == 0 || index > APR_UINT32_MAX) return NULL;
    node = hoard_malloc(total);
    if (!node) return NULL;
    *node = (apr_memnode_t){
        .index = (apr_uint32_t)index,
        .first_avail = (char *)node + APR_MEMNODE_T_SIZE,
        .endp = (char *)node + total,
    };
    return node;
}

/* A list of nodes, linked by next. */
void apr_allocator_free(apr_allocator_t *allocator, apr_memnode_t *node)
{
    (void)allocator;
    for (apr_memnode_t *one = node, *next; one != NULL; one = next) {
        next = one->next;
        hoard_free(one);
    }
}

/* --- attributes ------------------------------------------------------------------------------ */

void apr_allocator_owner_set(apr_allocator_t *allocator, apr_pool_t *pool)
{
    allocator->owner = pool;
}

apr_pool_t *apr_allocator_owner_get(apr_allocator_t *allocator)
{
    return allocator->owner;
}

void apr_allocator_mutex_set(apr_allocator_t *allocator, apr_thread_mutex_t *mutex)
{
    allocator->mutex = mutex;
}

apr_thread_mutex_t *apr_allocator_mutex_get(apr_allocator_t *allocator)
{
    return allocator->mutex;
}

/* How much an allocator may keep of what was freed: it keeps nothing. */
void apr_allocator_max_free_set(apr_allocator_t *allocator, apr_size_t size)
{
    (void)allocator;
    (void)size;
}
