/* SPDX-License-Identifier: Apache-2.0 */
/* child: a child process that has more memory than ReapChildLimit ends when its requests have.
 *
 *     serves --- too large, and its turn ---> drains --- nobody is there to be cut off ---> closes ---> ends
 *
 * serves   A thread of the module's looks once a second, if a request has ended since: at the RSS, and at the
 *          PSS only if the RSS is above the limit. It rests a hundred times as long as its look took.
 * drains   Responses say "Connection: close", and new connections have theirs: until the child has no
 *          connection. In event and worker others wait for no more than the longest KeepAliveTimeout, when
 *          whoever was there at the beginning has heard it, or is gone. Who sends requests ahead of their
 *          responses gets all of these.
 * closes   All responses say it, and the child waits for those that were promised before.
 * ends     By the MPM's own graceful end. In prefork that is SIGUSR1, which httpd's first process sends as
 *          well. In event and worker it is a word in a pipe that all children read. This child gets a pipe of
 *          its own in the place of that one, with the word in it. Which pipe it is is known by what the MPM
 *          opened with the logs; where that is not plain, no child is ended, and a line says so.
 *
 * One child of the server has its turn at a time (board.h). A child that is above the limit when it begins
 * does not end, since the next one would be as large.
 *
 * The thread has malloc's memory and the board's, and no pool's: pools go while it runs. It alone changes
 * the state, but for prefork's end, which belongs to the main thread while there is a connection.
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
