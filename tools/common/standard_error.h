/* SPDX-License-Identifier: Apache-2.0 */
/* standard_error.h: whether descriptor 2 is standard error, or a file of the program's.
 *
 * A program that was started without descriptor 2, or has closed it, gets the number for a file of its own:
 * a line there would damage it. So 2 is standard error if it was open at the start, and is still the same
 * file, or what programs put in its place: a terminal, a pipe, a file that is open for writing only, as logs
 * are. A file that can be read, too, and a socket are taken for the program's data.
 *
 * Threads: any.
 */
#ifndef STANDARD_ERROR_H
#define STANDARD_ERROR_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct stat standard_error_was; /* st_mode 0: closed */
static bool standard_error_is_known;

/* Before the program runs, and before a line that comes still earlier. */
__attribute__((constructor)) static void standard_error_note(void)
{
    if (standard_error_is_known) return;
    if (syscall(SYS_fstat, STDERR_FILENO, &standard_error_was) != 0) standard_error_was.st_mode = 0;
    standard_error_is_known = true;
}

static inline bool standard_error_is_there(void)
{
    struct stat is;
    standard_error_note();
    if (standard_error_was.st_mode == 0) return false;
    if (syscall(SYS_fstat, STDERR_FILENO, &is) != 0)
        return errno != EBADF; /* a sandbox may refuse the call */
    if (is.st_dev == standard_error_was.st_dev && is.st_ino == standard_error_was.st_ino) return true;
    long flags = syscall(SYS_fcntl, STDERR_FILENO, F_GETFL);
    return S_ISCHR(is.st_mode) || S_ISFIFO(is.st_mode) ||
           (S_ISREG(is.st_mode) && (flags & O_ACCMODE) == O_WRONLY);
}

#endif
