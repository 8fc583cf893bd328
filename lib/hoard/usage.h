/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h: what the allocator holds, in figures and in words.
 *
 * Approximate while threads allocate: nothing is stopped and no lock is held for long.
 */
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include "hoard.h"

void usage_fill(struct hoard_stats *stats);

/* Writes figures, options, and which path runs and why: to a stream, or to standard error when that is
 * NULL, as at exit, when streams may be gone. */
void usage_report(FILE *out);

#endif
