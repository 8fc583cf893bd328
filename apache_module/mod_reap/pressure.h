/* SPDX-License-Identifier: Apache-2.0 */
/* pressure: memory.high and memory.max of the control group (version 2) that httpd is in.
 *
 *     memory.events --- counts have grown ---> a line in the log --- asked ---> the child with most memory
 *                                                                               tells of itself (strike.h)
 *
 * The kernel's own way to tell, inotify, wants a process that waits, and here nobody waits: children serve,
 * and the first process is httpd's. So whoever is awake anyway reads the file: a child at the end of a
 * request, once a second at most, the first process every ten seconds, and when a child was killed. An idle
 * server reads once in ten seconds.
 *
 * The file is opened before the first process gives up its user or its root. Its counts are of this group and
 * those below it: what a limit of a group above does is not in it. They go to the board, where the first look
 * only notes them.
 */
#ifndef MOD_REAP_PRESSURE_H
#define MOD_REAP_PRESSURE_H

#include <httpd.h>

/* Opens the file until the pool ends; without one a look does nothing. */
void pressure_begin(apr_pool_t *pool);

/* Any process and thread. Tells once a minute at most, all processes together. */
void pressure_look(const server_rec *server);

#endif
