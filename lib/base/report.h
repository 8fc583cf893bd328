/* SPDX-License-Identifier: Apache-2.0 */
/* report.h: lines on standard error, written without allocating.
 *
 * Each line is formatted into a buffer on the stack and written with one write(2). Formats know %s, %.Ns (at
 * most N bytes), %p, %zu, %u, %llu and %%, and nothing else. Every layer uses these calls, in any state of
 * the process.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdarg.h>
#include <stddef.h>

/* Formats as above into buffer, and always terminates it. Returns the length, cut to size - 1. */
size_t report_format(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t report_vformat(char *buffer, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Formats bytes and the word `what`, from 10 KiB on as "1234567 bytes (1.2 MiB)". Returns text. */
enum { REPORT_BYTES = 48 };
const char *report_bytes(char text[REPORT_BYTES], size_t bytes, const char *what);

/* Writes "reap: " and the formatted line to standard error. errno is kept. */
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes once to which process what follows belongs: "reap: at the end of PROGRAM, process NUMBER". */
void report_end(void);

/* For lines at the end of the process: many programs close standard error in a function of atexit. So the
 * library duplicates it when the main thread calls exit, and not before: a server that closes or redirects
 * its standard error leaves the pipe that its starter reads. To be called once, at the start; it allocates,
 * and does nothing in other threads. */
void report_keep_stderr(void);

/* Reports misuse by the caller: one line "reap: CALL(POINTER): WHAT" on standard error, then abort(). `call`
 * is the public name, as in "reapFree". */
void report_misuse(const char *call, const void *pointer, const char *what) __attribute__((noreturn, cold));

/* Has fn write the lines of misuse (reapOnMisuse); NULL: nobody. Returns the one before. */
typedef void report_misuse_fn(char *line, size_t size, const char *call, const void *pointer,
                              const char *what);
report_misuse_fn *report_misuse_by(report_misuse_fn *fn);

/* For an object of another reap: "reap: CALL(POINTER): WHAT NAME", then abort(). */
void report_misuse_of(const char *call, const void *pointer, const char *what, const char *name)
    __attribute__((noreturn, cold));

#endif
