/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_userdata.c: values that others hang on a pool under a key. */
#include "apr_pool.h"

static apr_hash_t *table(apr_pool_t *pool)
{
    pool_check(pool, "apr_pool_userdata_set");
    if (!pool->user_data) pool->user_data = apr_hash_make(pool);
    return pool->user_data;
}

apr_status_t apr_pool_userdata_setn(const void *data, const char *key, apr_status_t (*cleanup)(void *),
                                    apr_pool_t *pool)
{
    apr_hash_t *values = table(pool);
    if (!values) return APR_ENOMEM;
    apr_hash_set(values, key, APR_HASH_KEY_STRING, data);
    if (cleanup) apr_pool_cleanup_register(pool, data, cleanup, cleanup);
    return APR_SUCCESS;
}

/* A key that is there already keeps the copy made for it: apr_hash_set replaces the value alone. */
apr_status_t apr_pool_userdata_set(const void *data, const char *key, apr_status_t (*cleanup)(void *),
                                   apr_pool_t *pool)
{
    apr_hash_t *values = table(pool);
    if (values && !apr_hash_get(values, key, APR_HASH_KEY_STRING)) key = apr_pstrdup(pool, key);
    return key ? apr_pool_userdata_setn(data, key, cleanup, pool) : APR_ENOMEM;
}

apr_status_t apr_pool_userdata_get(void **data, const char *key, apr_pool_t *pool)
{
    pool_check(pool, "apr_pool_userdata_get");
    *data = pool->user_data ? apr_hash_get(pool->user_data, key, APR_HASH_KEY_STRING) : NULL;
    return APR_SUCCESS;
}
