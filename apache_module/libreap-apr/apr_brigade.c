/* SPDX-License-Identifier: Apache-2.0 */
/* apr_brigade.c: brigades that are used again.
 *
 * Stock apr_brigade_create takes a brigade from its pool, and apr_brigade_destroy only empties it, so that a
 * pool that lives long grows: the session of an HTTP/2 connection by two brigades for each request. Here a
 * pool keeps its destroyed brigades in a queue, and apr_brigade_create takes the oldest one of more than a
 * few:
 *
 *     pool->last_idle -> newest -> oldest -> ... -> newest      (a ring, idle_brigades long)
 *
 * Use after destroy: a module may by mistake fill a brigade that it has destroyed, and pass it on; on stock
 * pools that works. So a brigade is used again only after IDLE_BRIGADES others of its pool were destroyed,
 * and only if it is empty then; else it is left to that module for good. Who fills one later shares it with
 * its next user: REAP_APR_BRIGADES=keep keeps all until their pool ends, as on stock pools.
 *
 * libaprutil's own calls come here too, since libreap-apr is loaded first. A program need not have
 * libaprutil: what follows uses only the macros of apr_buckets.h.
 */
#include "apr_pool.h"

#pragma GCC visibility push(default)
#include <apr_buckets.h>
#pragma GCC visibility pop

#include <stdio.h>
#include <stdlib.h>

enum { IDLE_BRIGADES = 8 /* in the queue of a pool, before one is used again */ };

struct brigade {
    apr_bucket_brigade shown; /* first: the part that programs know */
    struct brigade *next;     /* in the ring */
};

static bool keeps; /* REAP_APR_BRIGADES=keep */

void brigade_read_settings(void)
{
    const char *setting = secure_getenv("REAP_APR_BRIGADES");
    if (!setting || strcmp(setting, "reuse") == 0) return;
    keeps = strcmp(setting, "keep") == 0;
    if (!keeps) fprintf(stderr, "reap: REAP_APR_BRIGADES=%.100s: there are reuse and keep\n", setting);
}

static __attribute__((noinline)) void delete_all(apr_bucket_brigade *brigade)
{
    do {
        apr_bucket *bucket = APR_BRIGADE_FIRST(brigade);
        apr_bucket_delete(bucket);
    } while (!APR_BRIGADE_EMPTY(brigade));
}

/* Most brigades are empty when they end. */
static inline void empty(apr_bucket_brigade *brigade)
{
    if (!APR_BRIGADE_EMPTY(brigade)) delete_all(brigade);
}

/* The cleanup of a brigade in use, and by its presence the sign of one. */
static apr_status_t empty_at_end(void *brigade)
{
    empty(brigade);
    return APR_SUCCESS;
}

static void put(apr_pool_t *pool, struct brigade *brigade)
{
    struct brigade *last = pool->last_idle;
    brigade->next = last ? last->next : brigade;
    if (last) last->next = brigade;
    pool->last_idle = brigade;
    pool->idle_brigades++;
}

static struct brigade *take_oldest(apr_pool_t *pool)
{
    struct brigade *last = pool->last_idle, *oldest = last->next;
    last->next = oldest->next;
    if (--pool->idle_brigades == 0) pool->last_idle = NULL;
    return oldest;
}

/* A brigade that was destroyed long enough ago; NULL: there is none. */
static __attribute__((noinline)) struct brigade *take(apr_pool_t *pool)
{
    while (pool->idle_brigades > IDLE_BRIGADES) {
        struct brigade *brigade = take_oldest(pool);
        if (APR_BRIGADE_EMPTY(&brigade->shown)) return brigade;
    }
    return NULL;
}

apr_bucket_brigade *apr_brigade_create(apr_pool_t *pool, apr_bucket_alloc_t *list)
{
    struct brigade *brigade = pool->idle_brigades > IDLE_BRIGADES ? take(pool) : NULL;
    if (!brigade) brigade = pool_alloc(pool, sizeof *brigade);
    if (!brigade) return NULL;
    brigade->shown.p = pool;
    brigade->shown.bucket_alloc = list;
    APR_RING_INIT(&brigade->shown.list, apr_bucket, link);
    apr_pool_cleanup_register(pool, brigade, empty_at_end, apr_pool_cleanup_null);
    return &brigade->shown;
}

/* A brigade that has no cleanup was destroyed before, or is not ours, or has outlived a clear of its pool, or
 * has no pool: it is emptied, and that is all. */
apr_status_t apr_brigade_destroy(apr_bucket_brigade *brigade)
{
    bool is_ours = brigade->p && pool_drop_cleanup(brigade->p, brigade, empty_at_end);
    empty(brigade);
    if (is_ours && !keeps) put(brigade->p, (struct brigade *)brigade);
    return APR_SUCCESS;
}
