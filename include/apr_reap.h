/* SPDX-License-Identifier: Apache-2.0 */
/* apr_reap.h: calls that reaps add to APR's pools.
 *
 * Under libreap-apr every apr_pool_t is a reap, and these calls do what stock pools cannot. A module that
 * needs libreap-apr includes this header without further definitions.
 *
 * A module that loads everywhere defines REAP_APR_OPTIONAL before the include. Then all calls of this header
 * are weak. The calls of reap.h and hoard.h are weak too, if the module includes these headers after this
 * one. The module then loads on stock pools. A call of this header is safe there, and does what stock pools
 * can do:
 *
 *     apr_pfree(pool, object)            nothing: the object is freed with the pool
 *     apr_prealloc_sized(pool, ...)      copies into a new object, or leaves one that does not grow
 *     apr_prealloc(pool, NULL, size)     apr_palloc
 *     apr_prealloc(pool, object, size)   NULL, and the object stays: stock pools do not know its size
 *     apr_pool_reap(pool)                NULL
 *
 * A call of reap.h or hoard.h needs a test before it: `if (apr_reap_loaded())`. A name without arguments is
 * an address as always: apr_pfree is NULL on stock pools, and so is a call that the loaded library is too old
 * to have.
 *
 * Threads: one thread at a time uses a pool, as with apr_palloc.
 */
#ifndef APR_REAP_H
#define APR_REAP_H

#include <apr_pools.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef REAP_APR_OPTIONAL
#pragma weak apr_pfree
#pragma weak apr_prealloc
#pragma weak apr_pool_reap
#endif

/* Frees one object of this pool, from apr_palloc or a similar call; NULL is allowed. An object of another
 * pool, an object that was freed before, or a pointer that is not the start of an object ends the program
 * with one line. */
void apr_pfree(apr_pool_t *pool, void *object);

/* Resizes an object of this pool, and returns its address; NULL allocates. When there is no memory, calls the
 * pool's abort function, and returns NULL; the object stays as it was. */
void *apr_prealloc(apr_pool_t *pool, void *object, apr_size_t size);

/* The handle of the pool's reap, for the calls of reap.h; valid as long as the pool. */
void **apr_pool_reap(apr_pool_t *pool);

/* Whether the pools of this process are reaps: 1 or 0. */
static APR_INLINE int apr_reap_loaded(void)
{
#ifdef REAP_APR_OPTIONAL
    return apr_pfree && apr_prealloc && apr_pool_reap;
#else
    return 1;
#endif
}

/* apr_prealloc for every kind of pool. old_size is the number of bytes of the object to keep, at most its
 * size; for a NULL object the call ignores it. Reaps know the size themselves. On stock pools the call copies
 * old_size bytes, and the old object stays in the pool. */
static APR_INLINE void *apr_prealloc_sized(apr_pool_t *pool, void *object, apr_size_t old_size,
                                           apr_size_t size)
{
    void *place;
    if (apr_reap_loaded()) return apr_prealloc(pool, object, size);
    if (object && size <= old_size) return object;
    place = apr_palloc(pool, size);
    return place && object ? memcpy(place, object, old_size) : place;
}

#ifdef REAP_APR_OPTIONAL

static APR_INLINE void reap_apr_free(apr_pool_t *pool, void *object)
{
    if (apr_reap_loaded()) apr_pfree(pool, object);
}

static APR_INLINE void *reap_apr_realloc(apr_pool_t *pool, void *object, apr_size_t size)
{
    if (apr_reap_loaded()) return apr_prealloc(pool, object, size);
    return object ? NULL : apr_palloc(pool, size);
}

static APR_INLINE void **reap_apr_handle(apr_pool_t *pool)
{
    return apr_reap_loaded() ? apr_pool_reap(pool) : NULL;
}

/* With arguments these names are the functions above. Without arguments they are the addresses of the
 * library's functions. */
#define apr_pfree(pool, object) reap_apr_free(pool, object)
#define apr_prealloc(pool, object, size) reap_apr_realloc(pool, object, size)
#define apr_pool_reap(pool) reap_apr_handle(pool)

/* For reap.h and hoard.h, which may follow. */
#ifndef REAP_OPTIONAL
#define REAP_OPTIONAL
#endif

#endif

#ifdef __cplusplus
}
#endif

#endif
