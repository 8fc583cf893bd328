/* SPDX-License-Identifier: Apache-2.0 */
/* profile_write.h: a report for others: as pprof reads it, as a picture, and as text. */
#ifndef PROFILE_WRITE_H
#define PROFILE_WRITE_H

#include <stdio.h>

#include "profile_symbols.h"

struct profile_times {
    int64_t start_ns, lasts_ns; /* since 1970; the time that the profile was on */
    size_t period;
};

/* profile.proto of pprof, compressed by gzip. False: there is no memory. */
bool profile_write_pprof(const struct report *report, struct profile_times times, FILE *out);

/* A flame graph in one SVG: of all that was allocated, or of what lives. The heading has the deviation of
 * samples at this period. */
void profile_write_flames(const struct report *report, bool of_all, size_t period, FILE *out);

/* What malloc holds that no reap has, largest first: live bytes and objects, the innermost object (file) in
 * the stack that is no run-time library, and the name of the reap that the thread worked for, between tabs.
 */
void profile_write_mallocs(const struct report *report, FILE *out);

/* As profile_face.h has it. */
void profile_largest_stacks(void **reap, void (*fn)(const char *line, const void *arg), const void *arg);

/* A line for malloc and for each name of a reap, the one with most live bytes first. */
void profile_write_names(const struct report *report, FILE *out);

#endif
