/* SPDX-License-Identifier: Apache-2.0 */
/* library: the calls of libreap and libreap-apr that mod_reap makes, all weak.
 *
 * The module is linked to neither, so that it loads in any httpd. Where the libraries are preloaded, the
 * calls bind to them; elsewhere their addresses are NULL, and library_lacks() says what is missing.
 */
#ifndef MOD_REAP_LIBRARY_H
#define MOD_REAP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define REAP_APR_OPTIONAL
#include "apr_reap.h"
#include "hoard.h"
#include "reap.h"

/* NULL, or what is missing and how to preload it, in a few sentences. */
const char *library_lacks(void);

/* The bytes that a pool and the pools below it hold; 0 on stock pools. */
static inline size_t library_held(apr_pool_t *pool)
{
    return apr_pool_reap && reapHeldBytes ? reapHeldBytes(apr_pool_reap(pool)) : 0;
}

#endif
