/* SPDX-License-Identifier: Apache-2.0 */
/* strike: what the error log has of this child's memory at the moment that a limit strikes, or memory ends.
 *
 *     limit     a request or connection beyond its limit; a pool that gets no memory
 *     child     a child beyond its limit
 *     pressure  memory.high or memory.max of the control group
 */
#ifndef MOD_REAP_STRIKE_H
#define MOD_REAP_STRIKE_H

#include <httpd.h>

/* A line with the ten reaps that hold most, those of requests with their URL; and with the heap profile on a
 * line for each of the ten largest stacks: of this reap and those below it, or of all that the child has.
 * Without memory it says what it can. Whoever calls sees to it that this is rare. */
void strike_tell(const server_rec *server, void **reap);

#endif
