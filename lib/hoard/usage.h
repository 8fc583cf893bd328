/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h: the allocator's memory, in figures and in words.
 *
 * Figures are approximate while threads allocate: no thread is stopped and no lock is held for long.
 */
#ifndef USAGE_H
#define USAGE_H

#include "hoard.h"

#include <stdbool.h>

void usage_fill(struct hoard_stats *stats);

/* Writes figures, options, the path and its reason to a stream, or to standard error if that is NULL: at exit
 * streams may be gone. */
void usage_report(FILE *out);

/* Calls `line` with each line of that report, and with `to`. */
void usage_lines(void (*line)(const char *text, void *to), void *to);

/* As hoard_walk_classes. */
int usage_walk_classes(int (*fn)(const struct hoard_class *sizes, void *arg), void *arg);

/* usage_file.c. stats=FILE: copies the file's name at start, since the program may change its environment. */
void usage_file_start(void);

/* At exit: adds the report's lines to that file. False: the options name no file. */
bool usage_file_write(void);

#endif
