/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include "user.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 100 }; /* above those that programs close by habit */

static_assert(ENDPOINT_NAME == sizeof((struct sockaddr_un){0}.sun_path), "an address fits");

static struct {
    dev_t device;
    ino_t inode;
} path_is; /* the path of the socket that this process listens at */

/* --- addresses ------------------------------------------------------------------------------- */

static bool is_abstract(const char *address) { return *address == '@'; }

static socklen_t make_address(struct sockaddr_un *to, const char *address)
{
    size_t length = strlen(address);
    assert(length < ENDPOINT_NAME);
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(to->sun_path, address, length);
    if (!is_abstract(address)) return sizeof *to;
    to->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static int bind_to(int fd, const char *address)
{
    struct sockaddr_un to;
    socklen_t size = make_address(&to, address);
    return bind(fd, (struct sockaddr *)&to, size) == 0 ? 0 : errno;
}

/* As close, which is a cancellation point; and errno stays. */
static void close_quietly(int fd)
{
    int saved = errno;
    syscall(SYS_close, fd);
    errno = saved;
}

static int new_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/* Takes a descriptor over, under a higher number if there is one. */
static void adopt(struct endpoint *endpoint, int fd)
{
    struct stat is;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
    if (high >= 0) close_quietly(fd);
    endpoint->fd = high >= 0 ? high : fd;
    fstat(endpoint->fd, &is);
    endpoint->device = is.st_dev;
    endpoint->inode = is.st_ino;
}

/* --- listening ------------------------------------------------------------------------------- */

static bool is_socket(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0 && S_ISSOCK(is.st_mode);
}

/* Returns true if nobody is there. Only a refusal says so: a full queue, for one, is somebody's. */
static bool is_stale(const char *address)
{
    struct sockaddr_un to;
    socklen_t size = make_address(&to, address);
    int fd = new_socket();
    bool refused = fd >= 0 && connect(fd, (struct sockaddr *)&to, size) != 0 && errno == ECONNREFUSED;
    if (fd >= 0) close_quietly(fd);
    return refused;
}

/* Gives the socket its place. A link never replaces anything. */
static int put_in_place(const char *temporary, const char *address)
{
    if (link(temporary, address) == 0) return 0;
    if (errno != EEXIST || !is_socket(address)) return errno;
    if (!is_stale(address)) return EADDRINUSE;
    return rename(temporary, address) == 0 ? 0 : errno;
}

/* Listens under another name first: so nobody finds the socket at its place before it listens, and takes it
 * for stale. The descriptor's mode becomes the socket's. */
static int listen_at_path(int fd, const char *address, int waiting)
{
    char temporary[ENDPOINT_NAME + 16];
    struct stat is;
    int n = snprintf(temporary, sizeof temporary, "%s.%d", address, (int)getpid());
    if (n >= ENDPOINT_NAME) return ENAMETOOLONG;
    fchmod(fd, 0600);
    unlink(temporary);
    int error = bind_to(fd, temporary);
    if (error != 0) return error;
    error = listen(fd, waiting) == 0 ? put_in_place(temporary, address) : errno;
    if (error == 0 && stat(address, &is) == 0) {
        path_is.device = is.st_dev;
        path_is.inode = is.st_ino;
    }
    unlink(temporary);
    return error;
}

static int listen_at_name(int fd, const char *address, int waiting)
{
    int error = bind_to(fd, address);
    return error != 0 ? error : listen(fd, waiting) == 0 ? 0 : errno;
}

int endpoint_listen(struct endpoint *endpoint, const char *address, int waiting)
{
    int saved = errno, fd = new_socket();
    int error = fd < 0                 ? errno
                : is_abstract(address) ? listen_at_name(fd, address, waiting)
                                       : listen_at_path(fd, address, waiting);
    if (error == 0)
        adopt(endpoint, fd);
    else if (fd >= 0)
        close_quietly(fd);
    errno = saved;
    return error;
}

void endpoint_unlink(const char *address)
{
    struct stat is;
    if (is_abstract(address) || path_is.inode == 0 || stat(address, &is) != 0) return;
    if (is.st_dev == path_is.device && is.st_ino == path_is.inode) unlink(address);
}

/* --- clients --------------------------------------------------------------------------------- */

bool endpoint_is_open(const struct endpoint *endpoint)
{
    struct stat is;
    return endpoint->fd >= 0 && fstat(endpoint->fd, &is) == 0 && is.st_dev == endpoint->device &&
           is.st_ino == endpoint->inode;
}

int endpoint_accept(const struct endpoint *endpoint, struct endpoint *client)
{
    if (!endpoint_is_open(endpoint)) return EBADF;
    int fd = accept4(endpoint->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return errno;
    adopt(client, fd);
    return 0;
}

bool endpoint_is_trusted(const struct endpoint *client)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (!endpoint_is_open(client)) return false;
    if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return user_is_trusted(peer.uid);
}

ssize_t endpoint_read(const struct endpoint *endpoint, void *bytes, size_t size)
{
    errno = EBADF;
    return endpoint_is_open(endpoint) ? recv(endpoint->fd, bytes, size, MSG_DONTWAIT) : -1;
}

ssize_t endpoint_write(const struct endpoint *endpoint, const void *bytes, size_t size)
{
    errno = EBADF;
    return endpoint_is_open(endpoint) ? send(endpoint->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
}

/* A socket that is closed with bytes in it unread gives the other end an error instead of the end. */
void endpoint_hang_up(struct endpoint *endpoint)
{
    char rest[4096];
    for (unsigned i = 0; i < 16 && endpoint_read(endpoint, rest, sizeof rest) > 0; i++) continue;
    if (endpoint_is_open(endpoint)) shutdown(endpoint->fd, SHUT_RDWR);
    endpoint_close(endpoint);
}

void endpoint_close(struct endpoint *endpoint)
{
    if (endpoint_is_open(endpoint)) close_quietly(endpoint->fd);
    endpoint->fd = -1;
}
