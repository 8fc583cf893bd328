/* SPDX-License-Identifier: Apache-2.0 */
/* answer: what a child tells of itself when another child asks (the question "apache", library's thread).
 *
 * Lines of fields between tabs. What only passes through is JSON already; what has no "end" was cut off.
 *
 *     process   generation  start (us)  rss  pss or -1  requests  CPU time of this answer (us)
 *     pools     pools  bytes  live bytes  objects  chunks  inherited bytes       of the whole process
 *     backend   {...}
 *     tag       pools  bytes  live bytes  objects  chunks  inherited bytes  tag
 *     row       {...}                                           a pool of the tree, in preorder
 *     omitted   pools  bytes                                    what the rows leave out
 *     malloc    bytes  objects  module  name                    with the heap profile on; largest first
 *     host      requests  bytes  0  0  0  0  name               what is served for it now
 *     request   bytes  {...}                                    largest first
 *     end
 *
 * Inherited is a pool that the child has from the first process: it was there before the child answered, and
 * is not below the child's own. Its memory is shared until one of both writes to it.
 */
#ifndef MOD_REAP_ANSWER_H
#define MOD_REAP_ANSWER_H

#include <apr_pools.h>
#include <stdio.h>

enum { ANSWER_REQUESTS = 50, ANSWER_MALLOCS = 100, ANSWER_ROWS = 2000 };

/* In a new child: this is its own pool. */
void answer_begin(apr_pool_t *pool);

#define ANSWER_TELL "tell"

/* args: the greatest number of rows; or ANSWER_TELL: the answer goes to the error log (strike.h). arg: the
 * server. */
void answer(FILE *out, const char *args, void *arg);

#endif
