/* SPDX-License-Identifier: Apache-2.0 */
/* small_file.h: files, by system calls alone.
 *
 * Neither stdio nor malloc: this runs inside of malloc's start. Nor libc's open, read, write and close, which
 * are cancellation points: a thread that is to be cancelled would end in them, within malloc, with the locks
 * that it holds. syscall() is none. Threads: any.
 */
#ifndef SMALL_FILE_H
#define SMALL_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* As open, with O_CLOEXEC and mode 0666, write and close; close keeps errno. */
int small_file_open(const char *path, int flags);
ssize_t small_file_write(int fd, const void *bytes, size_t size);
void small_file_close(int fd);

/* Reads the first size - 1 bytes of a file, or all of it, into text, and terminates it. How many they were:
 * 0, with errno, where it cannot be read, and also where it is empty. */
size_t small_file_read(const char *path, char *text, size_t size);

/* A duplicate of a descriptor, with a number beyond what programs close by habit; not for programs that are
 * executed. -1 and errno when there is none. */
int small_file_keep(int fd);

#endif
