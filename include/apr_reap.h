/* SPDX-License-Identifier: Apache-2.0 */
/* apr_reap.h: calls that reaps add to APR's pools.
 *
 * Under libreap-apr every apr_pool_t is a reap, and these three calls do what stock pools cannot. A module
 * that includes this header can still run on stock pools: define REAP_APR_OPTIONAL before the include, which
 * declares the calls weak, and test their addresses.
 *
 * Threads: one thread at a time uses a pool, as with apr_palloc.
 */
#ifndef APR_REAP_H
#define APR_REAP_H

#include <apr_pools.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef REAP_APR_OPTIONAL
#pragma weak apr_pfree
#pragma weak apr_prealloc
#pragma weak apr_pool_reap
#endif

/* Frees one object of this pool, from apr_palloc or a similar call; NULL is allowed. An object of another
 * pool, an object that was freed before, or a pointer that is not the start of one ends the program with
 * one line. */
void apr_pfree(apr_pool_t *pool, void *object);

/* Resizes an object of this pool, and returns its place; NULL allocates. When there is no memory, calls the
 * pool's abort function, and returns NULL; the object stays as it was. */
void *apr_prealloc(apr_pool_t *pool, void *object, apr_size_t size);

/* The handle of the pool's reap, for the calls of reap.h; valid as long as the pool. */
void **apr_pool_reap(apr_pool_t *pool);

#ifdef __cplusplus
}
#endif

#endif
