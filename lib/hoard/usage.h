/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h: the allocator's memory, in figures and in words.
 *
 * Figures are approximate while threads allocate: no thread is stopped and no lock is held for long.
 */
#ifndef USAGE_H
#define USAGE_H

#include "hoard.h"

void usage_fill(struct hoard_stats *stats);

/* Writes figures, options, the path and its reason to a stream, or to standard error if that is NULL: at exit
 * streams may be gone. */
void usage_report(FILE *out);

/* As hoard_walk_classes. */
int usage_walk_classes(int (*fn)(const struct hoard_class *sizes, void *arg), void *arg);

#endif
