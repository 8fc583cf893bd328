/* SPDX-License-Identifier: Apache-2.0 */
/* apr_allocator.c: memory nodes, for those who use apr_allocator_t directly, and max_free.
 *
 * Pools do not use nodes: their chunks are their reap's. Bucket allocators do, and read a node's public
 * fields. A node comes from hoard. A request of httpd takes and frees three or four nodes of the smallest
 * size, and over HTTP/2 one of five pages, on whatever thread serves the connection then. So an allocator
 * keeps a few of these, and the last larger one: they need not go back to the heap of another CPU. One with a
 * mutex belongs to several threads, and keeps none, so that it needs no lock; the mutex is only remembered.
 * What it keeps goes back with what its pool keeps (give_back in apr_pool.c).
 */
#include "apr_pool.h"

#include <unistd.h>

#include "hoard.h"

enum {
    KEPT_NODES = 4,        /* at most, of the smallest size */
    SMALL_NODE = 2 * 4096, /* bytes of these, or more */
    LARGER_PAGES = 8,      /* of the larger one, at most */
};

apr_status_t apr_allocator_create(apr_allocator_t **allocator)
{
    *allocator = hoard_calloc(1, sizeof **allocator);
    if (!*allocator) return APR_ENOMEM;
    (*allocator)->kept_most = KEPT_NODES;
    (*allocator)->keeps_larger = true;
    return APR_SUCCESS;
}

/* Another node in the place of the larger one that is kept; or none. */
static void keep_larger(apr_allocator_t *allocator, apr_memnode_t *node)
{
    apr_memnode_t *before = allocator->larger;
    allocator->larger = node; /* first: see pool_free_cleanups */
    if (before) hoard_free(before);
}

/* The last node that was kept; there is one. */
static apr_memnode_t *pop_kept(apr_allocator_t *allocator)
{
    apr_memnode_t *node = allocator->kept;
    allocator->kept = node->next;
    allocator->kept_number--;
    return node;
}

void allocator_trim(apr_allocator_t *allocator)
{
    while (allocator->kept) hoard_free(pop_kept(allocator));
    keep_larger(allocator, NULL);
}

void apr_allocator_destroy(apr_allocator_t *allocator)
{
    allocator_trim(allocator);
    hoard_free(allocator);
}

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

/* Takes it if it has that size. NULL: it has not, or there is none. */
static apr_memnode_t *take_larger(apr_allocator_t *allocator, apr_size_t index)
{
    apr_memnode_t *node = allocator->larger;
    if (!node || node->index != index) return NULL;
    allocator->larger = NULL;
    return node;
}

/* Sets how many nodes an allocator may keep, and gives back those beyond. */
static void set_most(apr_allocator_t *allocator)
{
    const apr_size_t all = (2 * KEPT_NODES + LARGER_PAGES) * page_size();
    apr_size_t most = allocator->max_free / (2 * page_size());
    allocator->keeps_larger = !allocator->mutex && allocator->max_free - 1 >= all - 1; /* 0 is unlimited */
    if (!allocator->keeps_larger) keep_larger(allocator, NULL);
    if (allocator->max_free == APR_ALLOCATOR_MAX_FREE_UNLIMITED || most > KEPT_NODES) most = KEPT_NODES;
    allocator->kept_most = allocator->mutex ? 0 : (unsigned)most;
    while (allocator->kept_number > allocator->kept_most) hoard_free(pop_kept(allocator));
}

static inline bool keep(apr_allocator_t *allocator, apr_memnode_t *node)
{
    if (node->index != 1 || allocator->kept_number >= allocator->kept_most) return false;
    node->next = allocator->kept;
    allocator->kept = node;
    allocator->kept_number++;
    return true;
}

/* Keeps one that is not of the smallest size, or gives it back. */
static __attribute__((noinline)) void keep_or_free(apr_allocator_t *allocator, apr_memnode_t *node)
{
    if (allocator->keeps_larger && node->index > 1 && node->index < LARGER_PAGES)
        keep_larger(allocator, node);
    else
        hoard_free(node);
}

static __attribute__((noinline)) apr_memnode_t *new_node(apr_allocator_t *allocator, apr_size_t size)
{
    apr_size_t total = apr_allocator_align(allocator, size);
    apr_size_t index = total / page_size() - 1;
    apr_memnode_t *node;
    if (total == 0 || index > APR_UINT32_MAX) return NULL;
    if (index == 1)
        node = allocator->kept ? pop_kept(allocator) : NULL;
    else
        node = take_larger(allocator, index);
    if (!node) node = hoard_malloc(total);
    if (!node) return NULL;
    *node = (apr_memnode_t){
        .index = (apr_uint32_t)index,
        .first_avail = (char *)node + APR_MEMNODE_T_SIZE,
        .endp = (char *)node + total,
    };
    return node;
}

/* A node that was kept has its size and its end still, as on stock. */
apr_memnode_t *apr_allocator_alloc(apr_allocator_t *allocator, apr_size_t size)
{
    if (!allocator->kept || size > SMALL_NODE - APR_MEMNODE_T_SIZE) return new_node(allocator, size);
    apr_memnode_t *node = pop_kept(allocator);
    node->next = NULL;
    node->first_avail = (char *)node + APR_MEMNODE_T_SIZE;
    return node;
}

static __attribute__((noinline)) void free_list(apr_allocator_t *allocator, apr_memnode_t *node)
{
    for (apr_memnode_t *one = node, *next; one != NULL; one = next) {
        next = one->next;
        if (!keep(allocator, one)) keep_or_free(allocator, one);
    }
}

/* A list of nodes, linked by next: as a rule one. */
void apr_allocator_free(apr_allocator_t *allocator, apr_memnode_t *node)
{
    if (node->next)
        free_list(allocator, node);
    else if (!keep(allocator, node))
        keep_or_free(allocator, node);
}

void apr_allocator_owner_set(apr_allocator_t *allocator, apr_pool_t *pool) { allocator->owner = pool; }

apr_pool_t *apr_allocator_owner_get(apr_allocator_t *allocator) { return allocator->owner; }

void apr_allocator_mutex_set(apr_allocator_t *allocator, apr_thread_mutex_t *mutex)
{
    allocator->mutex = mutex;
    set_most(allocator);
}

apr_thread_mutex_t *apr_allocator_mutex_get(apr_allocator_t *allocator) { return allocator->mutex; }

/* The bytes of freed memory that an allocator may keep; and that each of its pools may, when it is cleared.
 * The rest goes back to hoard, which gives to the OS what it does not use again soon. */
void apr_allocator_max_free_set(apr_allocator_t *allocator, apr_size_t size)
{
    allocator->max_free = size;
    set_most(allocator);
}
