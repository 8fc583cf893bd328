/* SPDX-License-Identifier: Apache-2.0 */
/* charge: whom a thread works for, so that the heap profile knows for which URL PHP, Perl or OpenSSL took
 * memory of malloc (reapCharge): the request that it is at, or else its connection. Nothing while no profile
 * is on.
 */
#ifndef MOD_REAP_CHARGE_H
#define MOD_REAP_CHARGE_H

#include "live.h"

/* Turns the profile on for the first process and the children that it forks; off when pool goes. */
void charge_begin_profile(apr_pool_t *pool, const server_rec *server);

/* The URL is shown if the request is listed. NULL: it is not followed. */
void charge_request(const request_rec *r, const struct live *live);
void charge_connection(const conn_rec *c);

#endif
