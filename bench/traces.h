/* SPDX-License-Identifier: Apache-2.0 */
/* traces.h: recordings of real programs (bench/recordings) for the replays of pools_trace.h, read before time
 * is taken. A recording with pools is what was done with them: what it has of malloc's is left out. One
 * without is of one region, in which its program's mallocs, frees and reallocs are.
 */
#ifndef TRACES_H
#define TRACES_H

#include <stdbool.h>
#include <stddef.h>

#include "replay_ops.h"

struct event {
    enum replay_kind what;
    uint32_t number, pool; /* as of a replay_op; pool 0, which the recording does not begin, is the root */
    uint32_t size;         /* of an object; of a pool the number of objects that it is told to expect */
};

/* All that lives at the end of the recording is read there, and its pools end. */
struct trace {
    bool frees;
    uint32_t n, objects, pools; /* the largest number is one less */
    struct event *events;
    uint32_t expected; /* by the root */
    size_t bytes;      /* alive at once */
};

/* False: recordings cannot be read here, for there is no liblz4. */
bool trace_read(struct trace *trace, const char *name);

#endif
