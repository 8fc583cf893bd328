/* SPDX-License-Identifier: Apache-2.0 */
/* answer: what a child tells of itself when another child asks (the question "apache", library's thread).
 *
 * Lines of fields between tabs; the first field says what the line is. Fields that only pass through are
 * JSON already. The last line is "end": what has none was cut off.
 *
 *     process   generation  start (us)  rss  pss or -1  requests  CPU time of this answer (us)
 *     pools     pools  bytes  live bytes  objects  chunks       of the whole process
 *     backend   {...}
 *     tag       pools  bytes  live bytes  objects  chunks  tag
 *     row       {...}                                           a pool of the tree, in preorder
 *     omitted   pools  bytes                                    what the rows leave out
 *     request   bytes  {...}                                    largest first
 *     end
 */
#ifndef MOD_REAP_ANSWER_H
#define MOD_REAP_ANSWER_H

#include <stdio.h>

enum { ANSWER_REQUESTS = 50, ANSWER_ROWS = 2000 };

/* args: the greatest number of rows. */
void answer(FILE *out, const char *args, void *arg);

#endif
