/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h: writes the trace of trace_format.h.
 *
 * REAP_TRACE=FILE in the environment turns it on. FILE may have %p for the process id. A file that is there
 * is never written to: the trace then goes to FILE.PID, or FILE.PID.2 and so on; a forked child, and a
 * program that exec starts, get a trace of their own in this way. REAP_TRACE=FILE,stacks=N takes down N
 * frames of each call's stack.
 *
 *     slots     one for each thread, in a mapping of FILE.live: what is in it outlives the process, however
 *               that ends. A full slot is packed, and added to FILE
 *     guard     a page that the kernel empties in a forked child: its generation is then 0, its lock free
 *
 * The slots are not mapped in a forked child. So nothing has to be done before a fork, nor by _Fork or vfork.
 *
 * A fault of the file ends the trace with one line on standard error; what was taken down stays.
 *
 * Threads: any. A call is one of watch_enter's thread, so none is within another one of its thread.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "trace_format.h"

/* False once there is nothing to record: no REAP_TRACE, or its end. */
extern bool recorder_on;

/* Now, for an event that is told later. */
uint64_t recorder_now(void);

/* Takes an event down, as of its kind in trace_format.h; `pool` and `size` where the kind has them. caller is
 * the return address of the program's call, or NULL: then no stack is taken. */
void recorder_note(enum trace_kind kind, const void *object, const void *pool, size_t size, uint64_t time,
                   const void *caller);

#endif
