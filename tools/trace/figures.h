/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h: what a trace comes to: memory over time, sizes, lifetimes, and by stack who asked.
 *
 *     U    bytes that the program has asked for and not given back
 *     A    bytes that the process has in memory (RSS), above those at its first sample
 *
 * The curve has at most FIGURES_POINTS points: when there are more, each two become one, with the greatest of
 * both.
 */
#ifndef FIGURES_H
#define FIGURES_H

#include <stdio.h>

#include "drag.h"

enum { FIGURES_POINTS = 256, FIGURES_POWERS = 48 };

struct figures_point {
    uint64_t used, objects, held; /* the greatest of its time; held 0: no sample */
};

/* Of objects by the power of two that their size, or their life, reaches: bucket n has 2^(n-1)+1 to 2^n. */
struct figures_powers {
    uint64_t objects[FIGURES_POWERS], bytes[FIGURES_POWERS];
};

struct figures_stack {
    uint64_t objects, bytes; /* asked for */
    uint64_t alive;          /* bytes now */
    uint64_t at_peak;        /* and at U's greatest, as of the last time that it was looked at */
};

struct figures {
    struct lives lives;
    struct drag *drag; /* NULL: no last uses */
    uint64_t events[TRACE_KINDS], n_events;
    uint64_t n_unseen; /* events after the last one that is among the uses */
    uint64_t start, end;
    uint64_t most_used, most_used_at, most_objects, held_first, held_most;
    uint64_t width; /* of a point, nanoseconds */
    uint32_t n_points;
    struct figures_point points[FIGURES_POINTS];
    struct figures_powers sizes, lives_ns, lives_bytes;
    struct figures_stack *stacks; /* by number; the last one is of those without a stack */
    uint32_t n_stacks;
};

/* Reads a whole trace; with uses (uses.h) its last uses, too. False: no memory, which is said to standard
 * error. */
struct uses;
bool figures_read(struct figures *figures, struct reader *reader, struct uses *uses);
void figures_free(struct figures *figures);

/* A over U; 0: there are no samples. */
double figures_fragmentation(const struct figures *figures);

#endif
