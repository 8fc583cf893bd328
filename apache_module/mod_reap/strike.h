/* SPDX-License-Identifier: Apache-2.0 */
/* strike: what the error log has of this child's memory when a limit strikes, of a request, a child or the
 * control group, or memory ends. */
#ifndef MOD_REAP_STRIKE_H
#define MOD_REAP_STRIKE_H

#include <httpd.h>

/* A line with the ten reaps that hold most, those of requests with their URL; and with the heap profile on a
 * line for each of the ten largest stacks: of this reap and those below it, or of all that the child has.
 * Without memory it says what it can. Whoever calls sees to it that this is rare. */
void strike_tell(const server_rec *server, void **reap);

/* Until the pool ends libreap-apr's line of a misuse names the request that the thread serves, too. */
void strike_name_misuse(apr_pool_t *pool);

#endif
