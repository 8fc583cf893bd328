/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h: Unix sockets of the library's own, in a program that knows nothing of them.
 *
 * A program may close all descriptors, and open others under their numbers. So an endpoint knows its socket,
 * and looks before each use whether it is still that one. Its numbers are above those that programs close by
 * habit, and programs started by exec do not get it. Nothing here waits.
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <stdbool.h>
#include <sys/types.h>

struct endpoint {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define NO_ENDPOINT                                                                                          \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

enum { ENDPOINT_NAME = 108 }; /* bytes of an address, and a zero */

/* Listens at a path, or at "@name". 0, or an error number; EADDRINUSE: another socket listens there;
 * EEXIST: there is something else. */
int endpoint_listen(struct endpoint *endpoint, const char *address, int waiting);

/* Removes the path that an endpoint of this process listens at, if it is still this one's. */
void endpoint_unlink(const char *address);

/* Returns true if it is open, and the same socket as before. */
bool endpoint_is_open(const struct endpoint *endpoint);

/* Accepts a client. 0, or an error number; EAGAIN: there is none. */
int endpoint_accept(const struct endpoint *endpoint, struct endpoint *client);

/* Returns true if the process at the other end may ask this one. */
bool endpoint_is_trusted(const struct endpoint *client);

/* As recv and send; -1 with EAGAIN when they would wait. */
ssize_t endpoint_read(const struct endpoint *endpoint, void *bytes, size_t size);
ssize_t endpoint_write(const struct endpoint *endpoint, const void *bytes, size_t size);

/* Ends the connection, also for copies of the descriptor in forked children. */
void endpoint_hang_up(struct endpoint *endpoint);

/* Closes this process's descriptor. */
void endpoint_close(struct endpoint *endpoint);

#endif
