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

static int new_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

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
    if (fd >= 0) own_file_close_number(fd);
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

int endpoint_listen(struct own_file *endpoint, const char *address, int waiting)
{
    int saved = errno, fd = new_socket();
    int error = fd < 0                 ? errno
                : is_abstract(address) ? listen_at_name(fd, address, waiting)
                                       : listen_at_path(fd, address, waiting);
    if (error == 0)
        error = own_file_adopt(endpoint, fd) ? 0 : errno;
    else if (fd >= 0)
        own_file_close_number(fd);
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

int endpoint_accept(const struct own_file *endpoint, struct own_file *client)
{
    if (!own_file_is_open(endpoint)) return EBADF;
    int fd = accept4(endpoint->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return own_file_adopt(client, fd) ? 0 : errno;
}

bool endpoint_is_trusted(const struct own_file *client)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (!own_file_is_open(client)) return false;
    if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return user_is_trusted(peer.uid);
}

ssize_t endpoint_read(const struct own_file *endpoint, void *bytes, size_t size)
{
    return own_file_is_open(endpoint) ? recv(endpoint->fd, bytes, size, MSG_DONTWAIT) : -1;
}

ssize_t endpoint_write(const struct own_file *endpoint, const void *bytes, size_t size)
{
    return own_file_is_open(endpoint) ? send(endpoint->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
}

/* A socket that is closed with bytes in it unread gives the other end an error instead of the end. */
void endpoint_hang_up(struct own_file *endpoint)
{
    char rest[4096];
    for (unsigned i = 0; i < 16 && endpoint_read(endpoint, rest, sizeof rest) > 0; i++) continue;
    if (own_file_is_open(endpoint)) shutdown(endpoint->fd, SHUT_RDWR);
    own_file_close(endpoint);
}
