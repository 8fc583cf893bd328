/* SPDX-License-Identifier: Apache-2.0 */
/* misuse: libreap-apr's line of a misuse, in the error log, names the request that the thread serves, too. */
#ifndef MOD_REAP_MISUSE_H
#define MOD_REAP_MISUSE_H

#include <apr_pools.h>

/* Until the pool ends, with which the module may go. */
void misuse_begin(apr_pool_t *pool);

#endif
