/* SPDX-License-Identifier: Apache-2.0 */
/* named_file.h: files whose names the user gives (stats=), by system calls only. Threads: any. */
#ifndef NAMED_FILE_H
#define NAMED_FILE_H

/* Opens a file to add to its end; if there is none, makes it. Does not wait. Follows a link at this name if
 * it is the user's own or root's; in a shared directory it may be anybody's. Refuses what is neither a file
 * nor a character device, but a pipe that is one of the process's own descriptors serves (/dev/stderr,
 * /dev/fd/63). -1: no file, and *why says why not. */
int named_file_open(const char *path, const char **why);

#endif
