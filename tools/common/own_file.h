/* SPDX-License-Identifier: Apache-2.0 */
/* own_file.h: a descriptor of a library's own in a program that knows nothing of it.
 *
 * The program's descriptors are its own: its next file gets the lowest free number, and it may close all of
 * them, and open others under their numbers. So a library that keeps a descriptor moves it above those that
 * programs close by habit, never has one of the first three, and looks before each use whether it is still
 * the file that was opened. Programs started by exec do not get it.
 *
 * All of this is by system calls that allocate nothing and are no points of cancellation. Threads: as the
 * descriptor's user sees to.
 */
#ifndef OWN_FILE_H
#define OWN_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OWN_FILE_FIRST = 100 }; /* its number, where the process may have so many; else one above 2 */

struct own_file {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define NO_OWN_FILE                                                                                          \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* As close; errno stays. */
static inline void own_file_close_number(int fd)
{
    int saved = errno;
    syscall(SYS_close, fd);
    errno = saved;
}

/* Has the file of a descriptor under another number. False, with errno: there is none. */
static inline bool own_file_duplicate(struct own_file *own, int fd)
{
    struct stat is;
    int high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, OWN_FILE_FIRST);
    if (high < 0) high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
    own->fd = high;
    if (high < 0 || fstat(high, &is) != 0) return false;
    own->device = is.st_dev;
    own->inode = is.st_ino;
    return true;
}

/* Takes a descriptor over, which is closed; -1: there is none, and errno says why. False, with errno: there
 * is no number for it. */
static inline bool own_file_adopt(struct own_file *own, int fd)
{
    own->fd = -1;
    if (fd < 0) return false;
    bool done = own_file_duplicate(own, fd);
    own_file_close_number(fd);
    return done;
}

/* Returns true if it is open, and the same file as before. False, with EBADF in errno: not. */
static inline bool own_file_is_open(const struct own_file *own)
{
    struct stat is;
    if (own->fd >= 0 && fstat(own->fd, &is) == 0 && is.st_dev == own->device && is.st_ino == own->inode)
        return true;
    errno = EBADF;
    return false;
}

/* The same for a file with a name: if the program has closed it, it is opened once more. */
static inline bool own_file_is_there(struct own_file *own, const char *path, int flags)
{
    struct own_file again = NO_OWN_FILE;
    if (own_file_is_open(own)) return true;
    bool is_same = own->fd >= 0 && own_file_adopt(&again, (int)syscall(SYS_openat, AT_FDCWD, path, flags)) &&
                   again.device == own->device && again.inode == own->inode;
    if (is_same)
        *own = again;
    else if (again.fd >= 0)
        own_file_close_number(again.fd);
    if (!is_same) errno = EBADF;
    return is_same;
}

/* Closes it if it is still this one. */
static inline void own_file_close(struct own_file *own)
{
    int saved = errno;
    if (own_file_is_open(own)) own_file_close_number(own->fd);
    own->fd = -1;
    errno = saved;
}

#endif
