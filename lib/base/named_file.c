/* SPDX-License-Identifier: Apache-2.0 */
#include "base/named_file.h"

#include "base/kernel.h"
#include "base/parse.h"
#include "base/small_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OVERFLOW_UID = 65534 };

static uid_t overflow_uid(void)
{
    char text[16];
    const char *at = text;
    size_t number;
    size_t size = small_file_read("/proc/sys/kernel/overflowuid", text, sizeof text);
    return parse_number(&at, text + size, UINT32_MAX, &number) ? (uid_t)number : OVERFLOW_UID;
}

/* The map of users of a namespace that has all: from 0 on, to 0 on, 2^32 - 1 of them. */
static bool has_all_users(void)
{
    char text[64];
    small_file_read("/proc/self/uid_map", text, sizeof text);
    return strcmp(text, "         0          0 4294967295\n") == 0;
}

/* Returns true for root, and for what is certainly the effective user of this process. In a user namespace
 * that does not have all users, as in containers without root, the kernel gives those without a number the
 * same one (overflowuid, 65534 as a rule). So this number stands for one user only if the namespace has
 * all. */
static bool user_is_trusted(uid_t user)
{
    if (user != 0 && user != geteuid()) return false;
    return user != overflow_uid() || has_all_users();
}

/* Returns true for a link that is this user's or root's. */
static bool is_trusted_link(const char *path)
{
    struct stat file;
    return lstat(path, &file) == 0 && S_ISLNK(file.st_mode) && user_is_trusted(file.st_uid);
}

/* Returns true if the name leads to one of the process's own descriptors. */
static bool is_descriptor(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

/* Who reads from any other pipe might stop, or go away: then the process would hang, or the kernel end it. */
static bool is_for_text(int fd, const char *path)
{
    struct stat file;
    return fstat(fd, &file) == 0 && (S_ISREG(file.st_mode) || S_ISCHR(file.st_mode) ||
                                     (S_ISFIFO(file.st_mode) && is_descriptor(path)));
}

/* To open a pipe without O_NONBLOCK waits for a reader. */
int named_file_open(const char *path, const char **why)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NONBLOCK };
    int fd = small_file_open(path, FLAGS | O_NOFOLLOW);
    bool is_link = fd < 0 && errno == ELOOP, is_trusted = is_link && is_trusted_link(path);
    if (is_trusted) fd = small_file_open(path, FLAGS);
    if (fd >= 0 && is_for_text(fd, path)) {
        KERNEL(SYS_fcntl, fd, F_SETFL, O_APPEND);
        return fd;
    }
    *why = fd >= 0                  ? "it is neither a file nor a character device"
           : is_link && !is_trusted ? "it is another user's link"
           : errno == ENXIO         ? "it is a socket, or a pipe without a reader"
                                    : strerrordesc_np(errno);
    if (fd >= 0) small_file_close(fd);
    return -1;
}
