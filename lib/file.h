/* file.h: what the kernel says in files of a line or two.   (floor 0)
 *
 * Neither stdio nor malloc: this runs inside of malloc's start. Threads: any.
 */
#ifndef FILE_H
#define FILE_H

#include <stddef.h>

/* Reads the first size - 1 bytes of a file, or all of it, into text, and terminates it. How many they were:
 * 0, with errno, where it cannot be read, and also where it is empty. */
size_t file_read(const char *path, char *text, size_t size);

/* A duplicate of a descriptor, with a number beyond what programs close by habit; not for programs that are
 * executed. -1 and errno when there is none. */
int file_keep(int fd);

#endif
