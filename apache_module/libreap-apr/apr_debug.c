/* SPDX-License-Identifier: Apache-2.0 */
/* apr_debug.c: the names that code compiled with APR_POOL_DEBUG calls, as forwards; file_line is
 * where the call stands, and nothing here uses it. */
#include "apr_pool.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

void *apr_palloc_debug(apr_pool_t *pool, apr_size_t size, const char *file_line)
{
    return apr_palloc(pool, size);
}

#undef apr_pcalloc
void *apr_pcalloc(apr_pool_t *pool, apr_size_t size);
void *apr_pcalloc_debug(apr_pool_t *pool, apr_size_t size, const char *file_line)
{
    return apr_pcalloc(pool, size);
}

void apr_pool_clear_debug(apr_pool_t *pool, const char *file_line) { apr_pool_clear(pool); }

void apr_pool_destroy_debug(apr_pool_t *pool, const char *file_line) { apr_pool_destroy(pool); }

apr_status_t apr_pool_create_ex_debug(apr_pool_t **newpool, apr_pool_t *parent, apr_abortfunc_t abort_fn,
                                      apr_allocator_t *allocator, const char *file_line)
{
    return apr_pool_create_ex(newpool, parent, abort_fn, allocator);
}

apr_status_t apr_pool_create_core_ex_debug(apr_pool_t **newpool, apr_abortfunc_t abort_fn,
                                           apr_allocator_t *allocator, const char *file_line)
{
    return apr_pool_create_unmanaged_ex(newpool, abort_fn, allocator);
}

apr_status_t apr_pool_create_unmanaged_ex_debug(apr_pool_t **newpool, apr_abortfunc_t abort_fn,
                                                apr_allocator_t *allocator, const char *file_line)
{
    return apr_pool_create_unmanaged_ex(newpool, abort_fn, allocator);
}
