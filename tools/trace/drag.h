/* SPDX-License-Identifier: Apache-2.0 */
/* drag.h: how long objects stay after their last use (Berger, thesis 2002, 5.4.3).
 *
 * Time is what has been asked for by then, in bytes. An object's drag is its size times the time from its
 * last use to its end; an object that no use was seen of has been used when it began. What lives at the
 * trace's end ends there.
 *
 *     held    sum of size times life, over all objects
 *     needed  the same if each object had ended after its last use: held = needed + drag
 *
 * A table has, for each 8 bytes of memory, the object that is there, a page at a time.
 */
#ifndef DRAG_H
#define DRAG_H

#include "lives.h"

struct drag_stack {
    double drag; /* bytes times bytes */
    double held;
    uint64_t objects, bytes; /* that have ended, or lived at the trace's end */
};

struct drag_sums {
    double held, needed;             /* bytes times bytes */
    uint64_t most_held, most_needed; /* bytes at once */
    uint64_t uses, uses_of_objects;
};

/* An object that has ended, or lived at the trace's end, as it was then. */
struct drag_object {
    uint64_t address;
    uint64_t last_serial; /* objects that had begun when it was used last */
    uint32_t stack;       /* number, and 1; 0: there is no such object */
};

struct drag;

/* NULL: no memory. */
struct drag *drag_new(uint32_t n_stacks);
void drag_free(struct drag *drag);
bool drag_lacks_memory(const struct drag *drag);

void drag_change(struct drag *drag, const struct lives *lives, enum lives_change change, uint32_t number);
void drag_use(struct drag *drag, const struct lives *lives, uint64_t address);

/* The trace is over. */
void drag_end(struct drag *drag, const struct lives *lives);

const struct drag_sums *drag_sums(const struct drag *drag);
const struct drag_object *drag_object(const struct drag *drag, uint64_t serial);
const struct drag_stack *drag_stack(const struct drag *drag, uint32_t number);

#endif
