/* SPDX-License-Identifier: Apache-2.0 */
/* charge: whom a thread works for, so that the heap profile knows for which URL PHP, Perl, OpenSSL or
 * ModSecurity took memory of malloc (reapCharge).
 *
 * A thread has at most one charge of this module: the request that it is at, or else its connection. While no
 * libreap-profile is on, nothing is charged.
 */
#ifndef MOD_REAP_CHARGE_H
#define MOD_REAP_CHARGE_H

#include "live.h"

/* Turns the profile on for the first process and the children that it forks from now on; off when pool goes.
 */
void charge_begin_profile(apr_pool_t *pool, const server_rec *server);

/* The URL is shown if the request is listed. NULL: it is not followed. */
void charge_request(const request_rec *r, const struct live *live);
void charge_connection(const conn_rec *c);

#endif
