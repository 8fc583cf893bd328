/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool.c: the life of a pool, from creation to destruction.
 *
 * The order in which a pool ends is APR's contract with its users: pre-cleanups, children (newest
 * first), cleanups (last registered first, each popped before it is called, so that it may register
 * and kill others), subprocesses, the place in the tree, memory. Clearing is the same without the
 * last two; what stays is the pool's address, parent, allocator, tag and abort function.
 */
#include <pthread.h>

#include "apr_pool_tree.h"

static unsigned initialized; /* calls of apr_pool_initialize less those of apr_pool_terminate */
static apr_pool_t *global_pool;

apr_pool_t *pool_global(void) { return global_pool; }

/* --- creation -------------------------------------------------------------------------------- */

/* The pool whose reap a child's goes below: not an ending pool, whose reap is about to be emptied of
 * everything, while APR leaves such a child in place. */
static apr_pool_t *pool_above(apr_pool_t *parent)
{
    while (parent && parent->ending) parent = parent->parent;
    return parent;
}

/* What lies in the reap of a pool goes when that is cleared. */
static inline void forget_contents(apr_pool_t *pool)
{
    pool->subprocesses = NULL;
    pool->user_data = NULL;
    pool->last_idle = NULL;
    pool->idle_brigades = 0;
}

/* Frees a pool that has ended, a root or a child. */
static void pool_free(apr_pool_t *pool)
{
    if (pool->parent) {
        pool_tree_end(pool);
    } else {
        pool_set_dead(pool);
        hoard_free(pool);
    }
}

/* Frees a new pool that has no reap, or no memory at all. The abort function may leave by longjmp. */
static __attribute__((noinline, cold)) apr_status_t refuse(apr_pool_t **newpool, apr_abortfunc_t abort_fn)
{
    apr_pool_t *pool = *newpool;
    *newpool = NULL;
    if (pool) pool_free(pool);
    pool_exhausted(abort_fn);
    return APR_ENOMEM;
}

static apr_status_t pool_new(apr_pool_t **newpool, apr_pool_t *parent, apr_abortfunc_t abort_fn,
                             apr_allocator_t *allocator)
{
    apr_pool_t *above = pool_above(parent);
    apr_pool_t *pool = parent ? pool_tree_new(parent, abort_fn, allocator) : hoard_calloc(1, sizeof *pool);
    *newpool = pool;
    if (!pool) return refuse(newpool, abort_fn);
    if (!parent) pool_begin(pool, abort_fn, allocator);
    reapCreate(&pool->reap, above ? &above->reap : NULL);
    return pool->reap ? APR_SUCCESS : refuse(newpool, abort_fn);
}

/* A server that has threads gives back what it does not use, also while it has nothing to do. One without
 * threads stays without: httpd's prefork gives back at its next request. */
static atomic_bool asked_for_purging; /* in this process: a forked child has no thread of its parent's */

static inline bool must_ask(void)
{
    return !atomic_load_explicit(&asked_for_purging, memory_order_relaxed) && !__libc_single_threaded;
}

/* A store would copy the page. */
static void in_forked_child(void)
{
    if (asked_for_purging) asked_for_purging = false;
}

static __attribute__((noinline)) apr_status_t
create_slow(apr_pool_t **newpool, apr_pool_t *parent, apr_abortfunc_t abort_fn, apr_allocator_t *allocator)
{
    *newpool = NULL;
    if (!parent && !allocator) return APR_ENOPOOL; /* APR is not initialized */
    if (parent) pool_check(parent, "apr_pool_create_ex");
    if (must_ask() && !atomic_exchange(&asked_for_purging, true)) hoard_purge_when_idle();
    return pool_new(newpool, parent, abort_fn, allocator);
}

apr_status_t apr_pool_create_ex(apr_pool_t **newpool, apr_pool_t *parent, apr_abortfunc_t abort_fn,
                                apr_allocator_t *allocator)
{
    if (!parent) parent = global_pool;
    if (!parent) return create_slow(newpool, parent, abort_fn, allocator);
    if (!abort_fn) abort_fn = parent->abort_fn;
    if (!allocator) allocator = parent->allocator;
    apr_pool_t *pool = must_ask() || parent->ending ? NULL : pool_tree_new_again(parent, abort_fn, allocator);
    if (__builtin_expect(!pool, 0)) return create_slow(newpool, parent, abort_fn, allocator);
    *newpool = pool;
    reapCreate(&pool->reap, &parent->reap);
    return __builtin_expect((*newpool)->reap != NULL, 1) ? APR_SUCCESS
                                                         : refuse(newpool, (*newpool)->abort_fn);
}

/* A pool with an allocator that it owns. */
static apr_status_t pool_new_owner(apr_pool_t **newpool, apr_abortfunc_t abort_fn)
{
    apr_allocator_t *allocator;
    if (apr_allocator_create(&allocator) != APR_SUCCESS) return refuse(newpool, abort_fn);
    if (pool_new(newpool, NULL, NULL, allocator) != APR_SUCCESS) {
        apr_allocator_destroy(allocator);
        return refuse(newpool, abort_fn);
    }
    (*newpool)->abort_fn = abort_fn;
    apr_allocator_owner_set(allocator, *newpool);
    return APR_SUCCESS;
}

apr_status_t apr_pool_create_unmanaged_ex(apr_pool_t **newpool, apr_abortfunc_t abort_fn,
                                          apr_allocator_t *allocator)
{
    *newpool = NULL;
    if (!initialized) return APR_ENOPOOL;
    return allocator ? pool_new(newpool, NULL, abort_fn, allocator) : pool_new_owner(newpool, abort_fn);
}

apr_status_t apr_pool_create_core_ex(apr_pool_t **newpool, apr_abortfunc_t abort_fn,
                                     apr_allocator_t *allocator)
{
    return apr_pool_create_unmanaged_ex(newpool, abort_fn, allocator);
}

/* --- the end --------------------------------------------------------------------------------- */

static inline void end_contents(apr_pool_t *pool)
{
    if (pool->pre_cleanups) pool_run_cleanups(pool, &pool->pre_cleanups);
    while (pool->child) apr_pool_destroy(pool->child);
    pool->ending = true;
    if (pool->cleanups) pool_run_cleanups(pool, &pool->cleanups);
    if (pool->subprocesses) pool_end_subprocesses(pool->subprocesses);
}

/* Returns true if something ends before a pool's memory does: most pools that are cleared have only that. */
static inline bool has_contents(const apr_pool_t *pool)
{
    uintptr_t more = (uintptr_t)pool->pre_cleanups | (uintptr_t)pool->cleanups | (uintptr_t)pool->child;
    return (more | (uintptr_t)pool->subprocesses | (uintptr_t)pool->cleanup_blocks) != 0;
}

/* Returns true if the pool's next object would lie far from its reap: in another chunk, as a rule. */
static inline bool has_grown(const apr_pool_t *pool)
{
    enum { FAR = 8 * 1024 };
    const struct reap_front *front = pool->reap;
    return (uintptr_t)front->bump - (uintptr_t)front >= FAR;
}

/* Has a pool that had grown, and was cleared, give back all that it and its allocator keep: the first time in
 * each second, where to get it anew takes no time. The pool of a connection comes here when the connection
 * has ended. In a process of one thread nobody purges, so hoard gives back, too. */
static __attribute__((noinline)) void give_back(apr_pool_t *pool)
{
    enum { HELD = 1024 * 1024 /* bytes of hoard's, which stay */ };
    static time_t given; /* when hoard did, by the one thread */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (pool->allocator->mutex || pool->given_back == (uint16_t)now.tv_sec) return;
    pool->given_back = (uint16_t)now.tv_sec;
    reapTrim(&pool->reap, 0);
    allocator_trim(pool->allocator);
    if (!__libc_single_threaded || given == now.tv_sec) return;
    given = now.tv_sec;
    hoard_trim(HELD);
}

/* Has a pool that was cleared give back what its allocator's max_free does not allow it to keep. */
static inline void trim(apr_pool_t *pool)
{
    enum { KEPT_BY_CLEAR = 1024 * 1024 /* bytes at most: see reapFreeAll */ };
    apr_size_t most = pool->allocator->max_free;
    if (most != APR_ALLOCATOR_MAX_FREE_UNLIMITED && most < KEPT_BY_CLEAR) reapTrim(&pool->reap, most);
}

/* A cleanup may clear its own pool, which then is still ending. And it may register a pre-cleanup, which is
 * late for this end: as on stock pools it waits for the next one. */
void apr_pool_clear(apr_pool_t *pool)
{
    bool was_ending = pool->ending, grown = has_grown(pool);
    if (has_contents(pool)) {
        end_contents(pool);
        if (pool->cleanup_blocks && !pool->pre_cleanups) pool_free_cleanups(pool, true);
    }
    pool->ending = true; /* for functions of the reap */
    pool_call = "apr_pool_clear";
    reapFreeAll(&pool->reap);
    pool_call = NULL;
    trim(pool);
    if (grown) give_back(pool);
    forget_contents(pool);
    pool->ending = was_ending;
}

/* Frees a pool that has ended, and is a root or owns its allocator. The allocator's mutex, made in the pool
 * as a rule, is gone by now; nothing takes it. */
static __attribute__((noinline)) void free_other(apr_pool_t *pool)
{
    apr_allocator_t *allocator = pool->allocator;
    bool owner = allocator->owner == pool;
    pool_free(pool);
    if (owner) apr_allocator_destroy(allocator);
}

void apr_pool_destroy(apr_pool_t *pool)
{
    if (has_contents(pool)) {
        end_contents(pool);
        if (pool->cleanup_blocks) pool_free_cleanups(pool, false);
        if (pool->child) pool_tree_hand_up(pool);
    }
    pool->ending = true; /* for functions of the reap */
    pool_call = "apr_pool_destroy";
    reapDestroy(&pool->reap);
    pool_call = NULL;
    if (__builtin_expect(!pool->parent || pool->allocator->owner == pool, 0))
        free_other(pool);
    else
        pool_tree_end(pool);
}

/* --- the global pool ------------------------------------------------------------------------- */

static apr_status_t global_mutex_set(apr_allocator_t *allocator)
{
    apr_thread_mutex_t *mutex;
    apr_status_t status = apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, global_pool);
    if (status == APR_SUCCESS) apr_allocator_mutex_set(allocator, mutex);
    return status;
}

static apr_status_t global_pool_create(void)
{
    apr_allocator_t *allocator;
    apr_status_t status = apr_allocator_create(&allocator);
    if (status != APR_SUCCESS) return status;
    status = apr_pool_create_ex(&global_pool, NULL, NULL, allocator);
    if (status != APR_SUCCESS) {
        apr_allocator_destroy(allocator);
        return status;
    }
    apr_pool_tag(global_pool, "apr_global_pool");
    /* Mutexes may be made of atomics, so these come first. */
    status = apr_atomic_init(global_pool);
    if (status == APR_SUCCESS) status = global_mutex_set(allocator);
    if (status == APR_SUCCESS) apr_allocator_owner_set(allocator, global_pool);
    return status;
}

apr_status_t apr_pool_initialize(void)
{
    static bool before;
    apr_status_t status;
    if (initialized++) return APR_SUCCESS;
    if (!before) {
        if (!pool_tree_start()) {
            initialized = 0;
            return APR_ENOMEM;
        }
        pool_tree_prepare_for_fork();
        pthread_atfork(NULL, NULL, in_forked_child);
        pool_tell_misuse();
        brigade_read_settings();
    }
    before = true;
    status = global_pool_create();
    if (!global_pool) initialized = 0;
    return status;
}

void apr_pool_terminate(void)
{
    apr_pool_t *pool = global_pool;
    if (!initialized || --initialized) return;
    apr_pool_destroy(pool);
    pool_tree_trim();
    global_pool = NULL;
}

/* --- what a pool tells ----------------------------------------------------------------------- */

void apr_pool_abort_set(apr_abortfunc_t abort_fn, apr_pool_t *pool)
{
    pool_check(pool, "apr_pool_abort_set");
    pool->abort_fn = abort_fn;
}

apr_abortfunc_t apr_pool_abort_get(apr_pool_t *pool)
{
    pool_check(pool, "apr_pool_abort_get");
    return pool->abort_fn;
}

apr_pool_t *apr_pool_parent_get(apr_pool_t *pool)
{
    pool_check(pool, "apr_pool_parent_get");
    return pool->parent;
}

apr_allocator_t *apr_pool_allocator_get(apr_pool_t *pool)
{
    pool_check(pool, "apr_pool_allocator_get");
    return pool->allocator;
}

/* NULL stands above all pools, and every pool above itself. */
int apr_pool_is_ancestor(apr_pool_t *a, apr_pool_t *b)
{
    while (b && b != a) b = b->parent;
    return b == a;
}

/* The name shows in reports. That it may be lost for want of memory harms nobody. */
void apr_pool_tag(apr_pool_t *pool, const char *tag)
{
    pool_call = "apr_pool_tag";
    (void)reapSetName(&pool->reap, tag);
    pool_call = NULL;
}

void **apr_pool_reap(apr_pool_t *pool) { return &pool->reap; }
