/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_cleanup.c: functions that run when a pool ends, or when a forked child is about to exec. */
#include "apr_pool.h"

#include "hoard.h"

/* A request registers and kills some thirty cleanups, and has few at a time. So each pool uses its records
 * again: first those that lie in it, which are carved one by one, and then those of blocks of hoard. */
enum { BLOCK_RECORDS = 7 };

struct cleanup_block {
    struct cleanup_block *next;
    struct cleanup records[BLOCK_RECORDS];
};

static void spare(apr_pool_t *pool, struct cleanup *record)
{
    record->next = pool->spare_cleanups;
    pool->spare_cleanups = record;
}

static void spare_all(apr_pool_t *pool, struct cleanup_block *block)
{
    for (int i = BLOCK_RECORDS; i-- > 0;) spare(pool, &block->records[i]);
}

/* A record of a new block, or NULL for want of memory. */
static struct cleanup *take_of_block(apr_pool_t *pool)
{
    struct cleanup_block *block = hoard_malloc(sizeof *block);
    if (!block) return pool_exhausted(pool->abort_fn);
    block->next = pool->cleanup_blocks;
    pool->cleanup_blocks = block;
    spare_all(pool, block);
    struct cleanup *record = pool->spare_cleanups;
    pool->spare_cleanups = record->next;
    return record;
}

static inline void fill(struct cleanup **list, struct cleanup *cleanup, const void *data, cleanup_fn *plain,
                        cleanup_fn *child)
{
    cleanup->next = *list;
    cleanup->data = data;
    cleanup->plain = plain;
    cleanup->child = child;
    *list = cleanup;
}

static __attribute__((noinline)) void push_slow(apr_pool_t *pool, struct cleanup **list, const void *data,
                                                cleanup_fn *plain, cleanup_fn *child)
{
    pool_check(pool, child ? "apr_pool_cleanup_register" : "apr_pool_pre_cleanup_register");
    struct cleanup *cleanup = take_of_block(pool);
    if (cleanup) fill(list, cleanup, data, plain, child);
}

void pool_free_cleanups(apr_pool_t *pool, bool lives_on)
{
    struct cleanup_block *kept = lives_on ? pool->cleanup_blocks : NULL, *block;
    struct cleanup_block **first = kept ? &kept->next : &pool->cleanup_blocks;
    if (kept && !*first) return; /* its records, and the pool's own, are the spare ones */
    pool->spare_cleanups = NULL;
    pool->carved_cleanups = 0;
    while ((block = *first)) {
        *first = block->next; /* before it goes: the child of a fork may end this pool too */
        hoard_free(block);
    }
    if (kept) spare_all(pool, kept);
}

static inline void push(apr_pool_t *pool, struct cleanup **list, const void *data, cleanup_fn *plain,
                        cleanup_fn *child)
{
    struct cleanup *cleanup = pool->spare_cleanups;
    if (cleanup)
        pool->spare_cleanups = cleanup->next;
    else if (pool->carved_cleanups < OWN_CLEANUPS)
        cleanup = &pool->own_cleanups[pool->carved_cleanups++];
    if (__builtin_expect(cleanup != NULL, 1))
        fill(list, cleanup, data, plain, child);
    else
        push_slow(pool, list, data, plain, child);
}

void apr_pool_cleanup_register(apr_pool_t *pool, const void *data, cleanup_fn *plain, cleanup_fn *child)
{
    if (pool) push(pool, &pool->cleanups, data, plain, child);
}

void apr_pool_pre_cleanup_register(apr_pool_t *pool, const void *data, cleanup_fn *plain)
{
    if (pool) push(pool, &pool->pre_cleanups, data, plain, NULL);
}

/* The place that points to the latest registration of plain with data, or to the end of the list. */
static struct cleanup **find(struct cleanup **list, const void *data, cleanup_fn *plain)
{
    while (*list && ((*list)->data != data || (*list)->plain != plain)) list = &(*list)->next;
    return list;
}

static bool drop(apr_pool_t *pool, struct cleanup **place)
{
    struct cleanup *cleanup = *place;
    if (!cleanup) {
        pool_check(pool, "apr_pool_cleanup_kill");
        return false;
    }
    *place = cleanup->next;
    spare(pool, cleanup);
    return true;
}

bool pool_drop_cleanup(apr_pool_t *pool, const void *data, cleanup_fn *plain)
{
    return drop(pool, find(&pool->cleanups, data, plain));
}

/* One function may stand in both lists; APR takes it out of both. */
void apr_pool_cleanup_kill(apr_pool_t *pool, const void *data, cleanup_fn *plain)
{
    if (!pool) return;
    pool_drop_cleanup(pool, data, plain);
    if (pool->pre_cleanups) drop(pool, find(&pool->pre_cleanups, data, plain));
}

void apr_pool_child_cleanup_set(apr_pool_t *pool, const void *data, cleanup_fn *plain, cleanup_fn *child)
{
    if (!pool) return;
    pool_check(pool, "apr_pool_child_cleanup_set");
    struct cleanup *cleanup = *find(&pool->cleanups, data, plain);
    if (cleanup) cleanup->child = child;
}

apr_status_t apr_pool_cleanup_run(apr_pool_t *pool, void *data, cleanup_fn *plain)
{
    apr_pool_cleanup_kill(pool, data, plain);
    return plain(data);
}

void pool_run_cleanups(apr_pool_t *pool, struct cleanup **list)
{
    for (struct cleanup *cleanup; (cleanup = *list);) {
        cleanup_fn *plain = cleanup->plain;
        void *data = (void *)cleanup->data;
        *list = cleanup->next;
        spare(pool, cleanup);
        plain(data);
    }
}

/* In the child of a fork that is about to exec: takes no locks, since their holders may be threads
 * that the child does not have, and frees nothing. */
static void run_before_exec(apr_pool_t *pool)
{
    for (struct cleanup *cleanup; (cleanup = pool->cleanups);) {
        pool->cleanups = cleanup->next;
        cleanup->child((void *)cleanup->data);
    }
    for (pool = pool->child; pool; pool = pool->sibling) run_before_exec(pool);
}

void apr_pool_cleanup_for_exec(void)
{
    if (pool_global()) run_before_exec(pool_global());
}

apr_status_t apr_pool_cleanup_null(void *data)
{
    (void)data;
    return APR_SUCCESS;
}
