/* SPDX-License-Identifier: Apache-2.0 */
/* small_file.h: files, by system calls only.
 *
 * These functions use neither stdio nor malloc, since they run while malloc starts. Threads: any.
 */
#ifndef SMALL_FILE_H
#define SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* As open (with O_CLOEXEC and mode 0666) and close, which keeps errno. */
int small_file_open(const char *path, int flags);
void small_file_close(int fd);

/* Writes all of it. False, with errno: not all of it. */
bool small_file_write_all(int fd, const char *bytes, size_t size);

/* Reads the first size - 1 bytes of a file, or all of it, into text, and terminates it. Returns the number of
 * bytes. It is 0, with errno, where the file cannot be read, and also where it is empty. */
size_t small_file_read(const char *path, char *text, size_t size);

#endif
