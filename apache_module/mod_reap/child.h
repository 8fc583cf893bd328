/* SPDX-License-Identifier: Apache-2.0 */
/* child: a child process that has more memory than ReapChildLimit ends when its requests have.
 *
 *     serves --- too large, and its turn ---> drains --- nobody is there to be cut off ---> closes ---> ends
 *
 * serves   A thread of the module's looks once a second, if a request has ended since: at the RSS, and at the
 *          PSS only if the RSS is above the limit. It rests a hundred times as long as its look took.
 * drains   Responses say "Connection: close", until the child has no connection; in event and worker, for no
 *          longer than the longest KeepAliveTimeout. Who sends requests ahead gets all responses.
 * closes   All responses say it, and the child waits for those that were promised before.
 * ends     By the MPM's own graceful end: in prefork SIGUSR1, in event and worker a word in a pipe that all
 *          children read. This child gets a pipe of its own in the place of that one, which is known by what
 * the MPM opened with the logs; where that is not plain, no child is ended, and a line says so.
 *
 * One child of the server has its turn at a time (board.h). One that is above the limit when it begins does
 * not end, since the next one would be as large. The thread has malloc's memory and the board's, and no
 * pool's: pools go while it runs. It alone changes the state, but for prefork's end, which is the main
 * thread's.
 */
#ifndef MOD_REAP_CHILD_H
#define MOD_REAP_CHILD_H

#include <httpd.h>

#include <stdbool.h>

/* Registers the hooks. They do nothing without ReapChildLimit. */
void child_register(void);

/* In a new child: this is its own pool. */
void child_begin(apr_pool_t *pool, server_rec *main_server);

#endif
