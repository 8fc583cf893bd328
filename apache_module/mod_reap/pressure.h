/* SPDX-License-Identifier: Apache-2.0 */
/* pressure: memory.high and memory.max of the control group (version 2) that httpd is in.
 *
 * Where counts of memory.events have grown, the log gets a line, and the child with most memory tells of
 * itself (strike.h). The kernel's own way to tell, inotify, wants a process that waits. So whoever is awake
 * anyway reads the file: a child at the end of a request, once a second at most, the first process every ten
 * seconds, and when a child was killed. The first look only notes the counts on the board.
 *
 * The file is opened before the first process gives up its user or its root. A limit of a group above is not
 * in it.
 */
#ifndef MOD_REAP_PRESSURE_H
#define MOD_REAP_PRESSURE_H

#include <httpd.h>

/* Opens the file until the pool ends; without one a look does nothing. */
void pressure_begin(apr_pool_t *pool);

/* Any process and thread. Tells once a minute at most, all processes together. */
void pressure_look(const server_rec *server);

#endif
