/* SPDX-License-Identifier: Apache-2.0 */
/* apr_reap.h: what reaps add to APR's pools.
 *
 * Under libreap-apr every apr_pool_t is a reap, and these three calls reach what stock pools do
 * not have. A module that includes this header can still run on stock pools: declare the calls
 * weak, and test their addresses (REAP_APR_OPTIONAL before including does so).
 *
 * Threads: as for apr_palloc, one thread at a time in one pool.
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

/* Frees one object that apr_palloc or its kin gave for this pool; NULL is allowed. An object of
 * another pool, freed before, or not the start of one, ends the program with one line. */
void apr_pfree(apr_pool_t *pool, void *object);

/* Resizes an object of this pool; NULL allocates. NULL on exhaustion, after the pool's abort
 * function was called; the object then stays as it was. */
void *apr_prealloc(apr_pool_t *pool, void *object, apr_size_t size);

/* The handle of the pool's reap, for the calls of reap.h; valid while the pool lives. */
void **apr_pool_reap(apr_pool_t *pool);

#ifdef __cplusplus
}
#endif

#endif
