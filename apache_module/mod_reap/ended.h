/* SPDX-License-Identifier: Apache-2.0 */
/* ended: children that end in the midst of their requests, and for which of them.
 *
 * The kernel kills a child at once, so all that is known was written before, with each request (board.h). The
 * signal and the most resident bytes are known between the death, by SIGCHLD, and httpd's wait for the child.
 *
 * A request stands out if it held at least half of what the child can have grown by since it began, by the
 * heap profile or a look at its pools, and no other held more than half as much; or else the one since which
 * the RSS has grown most, if no other has more than half of that. Where nothing tells them apart, none is
 * named. A request that ended its child itself, at ReapLimitHard or for want of memory, has said so.
 */
#ifndef MOD_REAP_ENDED_H
#define MOD_REAP_ENDED_H

#include "board.h"

/* The first process listens for deaths until pool goes, and its children do not. */
void ended_begin(apr_pool_t *pool);
void ended_in_child(void);

/* A child has ended without leaving the board: tells the log, notes it, and frees its slot. */
void ended_tell(struct board_slot *slot, server_rec *server);

#endif
