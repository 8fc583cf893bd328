/* SPDX-License-Identifier: Apache-2.0 */
#include "base/named_file.h"

#include "base/base.h"
#include "base/small_file.h"
#include "base/user.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns true for a link that is this user's or root's. */
static bool is_trusted_link(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0 && S_ISLNK(is.st_mode) && user_is_trusted(is.st_uid);
}

/* Returns true if the name leads to one of the process's own descriptors. */
static bool is_own(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

/* Who reads from any other pipe might stop, or go away: then the process would hang, or the kernel end it. */
static bool is_for_text(int fd, const char *path)
{
    struct stat is;
    return fstat(fd, &is) == 0 &&
           (S_ISREG(is.st_mode) || S_ISCHR(is.st_mode) || (S_ISFIFO(is.st_mode) && is_own(path)));
}

/* To open a pipe without O_NONBLOCK waits for a reader. */
int named_file_open(const char *path, const char **why)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NONBLOCK };
    int fd = small_file_open(path, FLAGS | O_NOFOLLOW);
    bool is_link = fd < 0 && errno == ELOOP, is_trusted = is_link && is_trusted_link(path);
    if (is_trusted) fd = small_file_open(path, FLAGS);
    if (fd >= 0 && is_for_text(fd, path)) {
        syscall(SYS_fcntl, fd, F_SETFL, O_APPEND);
        return fd;
    }
    *why = fd >= 0                  ? "it is neither a file nor a character device"
           : is_link && !is_trusted ? "it is another user's link"
           : errno == ENXIO         ? "it is a socket, or a pipe without a reader"
                                    : strerrordesc_np(errno);
    if (fd >= 0) small_file_close(fd);
    return -1;
}
