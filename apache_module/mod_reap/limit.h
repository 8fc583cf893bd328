/* SPDX-License-Identifier: Apache-2.0 */
/* limit: requests that hold more than they may.
 *
 * The limits are soft: the pools are looked at where a module can say no, between the phases of a request and
 * at each brigade that passes between handler and client. The allocation beyond a limit succeeds; nothing in
 * httpd has to expect NULL.
 *
 *     client -> input filters -> REAP_LIMIT_IN -> handler -> REAP_LIMIT -> content filters -> client
 *
 * A request that is ended gets its error page, or breaks off. From then on its connection is aborted as far
 * as httpd's calls can tell, so that its handler returns.
 */
#ifndef MOD_REAP_LIMIT_H
#define MOD_REAP_LIMIT_H

#include "live.h"

/* Registers filters and the hooks of the phases. */
void limit_register(void);

/* A request begins: its hard limit, and what happens when there is no memory. */
void limit_begin(request_rec *r);

/* A request is over, and about to be logged: the note reap-limit. */
void limit_end(request_rec *r, const struct live *live);

#endif
