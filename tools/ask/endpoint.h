/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h: Unix sockets of the library's own, in a program that knows nothing of them (own_file.h).
 * Nothing here waits.
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <sys/types.h>

#include "tools/common/own_file.h"

enum { ENDPOINT_NAME = 108 }; /* bytes of an address, and a zero */

/* Listens at a path, or at "@name". 0, or an error number; EADDRINUSE: another socket listens there;
 * EEXIST: there is something else. */
int endpoint_listen(struct own_file *endpoint, const char *address, int waiting);

/* Removes the path that an endpoint of this process listens at, if it is still this one's. */
void endpoint_unlink(const char *address);

/* Accepts a client. 0, or an error number; EAGAIN: there is none. */
int endpoint_accept(const struct own_file *endpoint, struct own_file *client);

/* Returns true if the process at the other end may ask this one. */
bool endpoint_is_trusted(const struct own_file *client);

/* As recv and send; -1 with EAGAIN when they would wait. */
ssize_t endpoint_read(const struct own_file *endpoint, void *bytes, size_t size);
ssize_t endpoint_write(const struct own_file *endpoint, const void *bytes, size_t size);

/* Ends the connection, also for copies of the descriptor in forked children. */
void endpoint_hang_up(struct own_file *endpoint);

#endif
