/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool.h: an APR pool on a reap, as the files of libreap-apr share it.
 *
 * libreap-apr defines every function of apr_pools.h and apr_allocator.h, so that a program that loads it
 * before libapr has all of its pools on reaps. All or nothing: stock code would read this struct as its own.
 * A pool is a reap with APR's cleanups, children, subprocesses and user data. It is ending once its children
 * are gone.
 *
 * Invariants
 *     - The reap of a pool is a child of its parent's reap: limits and reports follow the pools. If the
 * parent was ending, whose objects are about to go, it is a child of the parent's parent's.
 *     - Cleanup records are hoard's, not the reap's, so that a pool at its limit can still register. Sixteen
 *       lie in the pool, others in blocks, of which one stays the pool's until it is destroyed.
 *     - *pool->ref == pool, for every pool in a list of children.
 *
 * Threads: one at a time in a pool; any threads make and destroy children of one parent at once. The lists of
 * children have locks of their own (apr_pool_tree.c), because the parent's allocator often has no mutex.
 */
#ifndef APR_POOL_H
#define APR_POOL_H

/* Every function these headers declare is exported; whatever else we define stays hidden. */
#pragma GCC visibility push(default)
#include <apr_allocator.h>
#include <apr_atomic.h>
#include <apr_hash.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <apr_thread_proc.h>

#include "apr_reap.h"
#pragma GCC visibility pop

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "reap.h"

struct brigade;
struct cleanup_block;
struct subprocess;

typedef apr_status_t cleanup_fn(void *data);
struct cleanup {
    struct cleanup *next;
    const void *data;
    cleanup_fn *plain; /* when the pool is cleared or destroyed */
    cleanup_fn *child; /* before exec; NULL in pre-cleanups, which have none */
};

enum { OWN_CLEANUPS = 16 /* records in a pool, as most pools need */ };

struct apr_pool_t {
    /* In memory that was freed hoard has the first word: so it is one that a call for a dead pool does not
     * use before its line is written. */
    apr_abortfunc_t abort_fn; /* called when there is no memory; may be NULL */

    /* In a new pool all from here to the allocator is zero, and then it gets its reap. */
    void *reap;                           /* at a place that no reap has: reapCreate looks twice at others */
    apr_pool_t *child;                    /* the newest; guarded by this pool's own lock */
    struct cleanup *cleanups;             /* last registered first */
    struct cleanup *pre_cleanups;         /* the same; these run before the children go */
    struct cleanup *spare_cleanups;       /* a dead pool has none, and none to carve */
    struct cleanup_block *cleanup_blocks; /* records beyond the pool's own */
    struct subprocess *subprocesses;
    apr_hash_t *user_data;     /* in the reap; NULL until something is set */
    struct brigade *last_idle; /* see apr_brigade.c */
    unsigned idle_brigades;    /* their number */
    uint8_t carved_cleanups;   /* of its own: the first ones, in use or spare */
    bool ending;
    uint16_t given_back; /* when, in seconds, without their upper bits */

    apr_allocator_t *allocator;

    apr_pool_t *parent;
    apr_pool_t *sibling; /* these two are guarded by the parent's lock */
    apr_pool_t **ref;    /* what points to this pool: parent->child, or an elder's sibling */

    struct cleanup own_cleanups[OWN_CLEANUPS];
};

/* Begins a pool that is in no list yet, but for its reap and parent. */
static inline void pool_begin(apr_pool_t *pool, apr_abortfunc_t abort_fn, apr_allocator_t *allocator)
{
    memset(&pool->reap, 0, offsetof(apr_pool_t, allocator) - offsetof(apr_pool_t, reap));
    pool->abort_fn = abort_fn;
    pool->allocator = allocator;
}

/* See apr_allocator.c. */
struct apr_allocator_t {
    apr_thread_mutex_t *mutex;
    apr_pool_t *owner;    /* the pool whose destruction destroys the allocator, or NULL */
    apr_size_t max_free;  /* bytes, or APR_ALLOCATOR_MAX_FREE_UNLIMITED */
    apr_memnode_t *kept;  /* free nodes of the smallest size, linked by next */
    unsigned kept_number; /* of them */
    unsigned kept_most;
    apr_memnode_t *larger; /* one more, of another size, if it */
    bool keeps_larger;     /* may be kept */
};

/* Gives back the nodes that the allocator keeps. */
void allocator_trim(apr_allocator_t *allocator);

/* --- apr_pool.c ------------------------------------------------------------------------------ */

/* The pool above all others; NULL before apr_pool_initialize. */
apr_pool_t *pool_global(void);

/* The front of a pool that was destroyed: no handle of a reap, so that calls for it end with a line. */
extern const struct reap_front pool_dead_reap;

static inline void pool_set_dead(apr_pool_t *pool)
{
    pool->reap = (void *)&pool_dead_reap;
    pool->spare_cleanups = NULL;
    pool->carved_cleanups = OWN_CLEANUPS;
}

/* For calls of APR's that make none of reap.h: writes the line, if the pool is dead. */
void pool_tell_dead(apr_pool_t *pool, const char *call) __attribute__((cold));
static inline void pool_check(apr_pool_t *pool, const char *call)
{
    if (__builtin_expect(pool->reap == &pool_dead_reap, 0)) pool_tell_dead(pool, call);
}

/* --- apr_pool_alloc.c ------------------------------------------------------------------------ */

/* apr_palloc, without a call where the pool has room. A second call, of reapMalloc, would cost half as much
 * again, and even a mere jump there a third. */
void *pool_alloc_slow(apr_pool_t *pool, apr_size_t size);
static inline void *pool_alloc(apr_pool_t *pool, apr_size_t size)
{
    void *object = reap_bump(&pool->reap, size);
    return __builtin_expect(object != NULL, 1) ? object : pool_alloc_slow(pool, size);
}

/* What happens when a pool has no memory: its abort function is called, and if that returns, NULL
 * is the caller's answer. */
void *pool_exhausted(apr_abortfunc_t abort_fn) __attribute__((cold));

/* --- apr_brigade.c --------------------------------------------------------------------------- */

/* Reads what the user says about brigades. */
void brigade_read_settings(void);

/* --- apr_pool_cleanup.c ---------------------------------------------------------------------- */

/* Runs a list of the pool's cleanups, those included that register meanwhile, until it is empty. */
void pool_run_cleanups(apr_pool_t *pool, struct cleanup **list);

/* apr_pool_cleanup_kill for a cleanup that is no pre-cleanup. False: there is no such cleanup. */
bool pool_drop_cleanup(apr_pool_t *pool, const void *data, apr_status_t (*plain)(void *data));

/* After all cleanups have run: gives back the records, all but one block's if the pool is to live on. */
void pool_free_cleanups(apr_pool_t *pool, bool lives_on);

/* --- apr_misuse.c ---------------------------------------------------------------------------- */

/* The call of APR's that this thread makes calls of reap.h for, or NULL: the line of a misuse names it. Calls
 * set it that programs misuse, and only around that call. */
extern _Thread_local const char *pool_call;

/* Has the lines of misuse say so. */
void pool_tell_misuse(void);

/* --- apr_pool_process.c ---------------------------------------------------------------------- */

/* Ends the subprocesses noted in a pool, each in its own way, and waits for them. */
void pool_end_subprocesses(struct subprocess *list);

#endif
