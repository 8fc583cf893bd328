/* SPDX-License-Identifier: Apache-2.0 */
/* numbered_name.h: a name that a user gives, with the process's number for each %p.
 *
 * Threads: any. Nothing is allocated.
 */
#ifndef NUMBERED_NAME_H
#define NUMBERED_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Copies the first `length` bytes of `given` to name, and ends it with 0. False: name has too few bytes, and
 * has the beginning. */
static inline bool numbered_name(char *name, size_t size, const char *given, size_t length)
{
    char number[24], *digits = number + sizeof number;
    const char *end = given + length;
    size_t n = 0;
    for (unsigned left = (unsigned)getpid(); left != 0 || digits == number + sizeof number; left /= 10)
        *--digits = (char)('0' + left % 10);
    while (given < end) {
        bool is_number = end - given >= 2 && given[0] == '%' && given[1] == 'p';
        size_t more = is_number ? (size_t)(number + sizeof number - digits) : 1;
        if (more >= size - n) break;
        memcpy(name + n, is_number ? digits : given, more);
        n += more;
        given += is_number ? 2 : 1;
    }
    name[n] = '\0';
    return given == end;
}

#endif
