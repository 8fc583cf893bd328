/* SPDX-License-Identifier: Apache-2.0 */
/* reap_trace.h: a line in a file for each reap that begins, is cleared, meets a limit, or ends.
 *
 * REAP_OPTIONS=trace=FILE. Each line is one write(2) at the file's end, so lines of threads and of processes
 * that have forked do not mix; each begins with the process and the microseconds since the first reap:
 *
 *   4711 1203 create 0x7f22c4002080 below 0x7f22c4000080
 *   4711 1207 limit 0x7f22c4002080 request: 70000 more, of 65536
 *   4711 1250 clear 0x7f22c4002080 request: 12 objects, 960 bytes, 1 chunks, 8192 held
 *   4711 2290 destroy 0x7f22c4002080 request: 3 objects, 96 bytes, 1 chunks, 8192 held, 8192 at most, after 9
 *
 * A reap that is traced has REAP_WATCHED, so frees in it take a slow path; it bumps as ever.
 *
 * Threads: any.
 */
#ifndef REAP_TRACE_H
#define REAP_TRACE_H

#include "region/reap_types.h"

extern HIDDEN bool reap_trace_on;

/* Opens the file that the options name; before the first reap. */
void reap_trace_start(void);

void reap_trace_create(struct reap *reap);
void reap_trace_limit(const struct reap *reap, size_t asked);

/* What a reap held that is cleared or, ended, has lived for some time (reap_stats.c says it). */
void reap_trace_held(const struct reap *reap, const char *held, bool ends);

#endif
