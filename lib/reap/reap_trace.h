/* SPDX-License-Identifier: Apache-2.0 */
/* reap_trace.h: a line in a file for each reap that begins, is cleared, meets a limit, or ends.
 *
 * REAP_OPTIONS=trace=FILE turns it on. Each line is one write(2) at the file's end: so lines of threads and
 * of forked processes do not mix. A line begins with the process id and the microseconds since the first
 * reap:
 *
 *   4711 1203 create 0x7f22c4002080 below 0x7f22c4000080
 *   4711 1207 limit 0x7f22c4002080 request: 70000 more, of 65536
 *   4711 1250 clear 0x7f22c4002080 request: 12 objects, 960 bytes, 1 chunks, 8192 held
 *   4711 2290 destroy 0x7f22c4002080 request: 3 objects, 96 bytes, 1 chunks, 8192 held, 8192 at most, after 9
 *
 * A traced reap has REAP_WATCHED, so its frees take a slow path; bumping is as without a trace.
 *
 * Threads: any.
 */
#ifndef REAP_TRACE_H
#define REAP_TRACE_H

#include "reap.h"
#include "region/reap_types.h"

extern HIDDEN bool reap_trace_on;

/* Opens the file that the options name; before the first reap. */
void reap_trace_start(void);

void reap_trace_create(struct reap *reap);
void reap_trace_limit(const struct reap *reap, size_t asked);

/* Writes the line of a reap that is cleared or ends. */
void reap_trace_held(const struct reap *reap, const struct reap_stats *held, bool ends);

#endif
