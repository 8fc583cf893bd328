/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h: what the allocator holds, in figures and in words.
 *
 * Approximate while threads allocate: nothing is stopped and no lock is held for long.
 */
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include "hoard.h"

#include <stdbool.h>

void usage_fill(struct hoard_stats *stats);

/* Writes figures, options, and which path runs and why: to a stream, or to standard error when that is
 * NULL, as at exit, when streams may be gone. */
void usage_report(FILE *out);

/* Hands each line of that report to `line`, with `to`. */
void usage_lines(void (*line)(const char *text, void *to), void *to);

/* usage_file.c. stats=FILE: notes the file's name at start, since the program may change its environment. */
void usage_file_start(void);

/* At exit: adds the same lines to that file, or a line of JSON if its name ends in .json. false: no file was
 * given. */
bool usage_file_write(void);

#endif
