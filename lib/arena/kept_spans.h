/* SPDX-License-Identifier: Apache-2.0 */
/* kept_spans.h: the small spans that were freed last, for the next large objects of their size.
 *
 * To make slots free, and to claim some, takes some twenty atomic instructions, and most large objects are
 * small ones that come and go. So a free of up to KEPT_SLOTS slots leaves its span in a set, and the next
 * allocation of as many slots takes it from there: one atomic instruction each. Threads of one heap id share
 * a set, and ids that are KEPT_SETS apart do. A span comes back to the set of the id that had it first,
 * whoever frees it: so its lines stay in one CPU's cache, and who allocates for others finds it again.
 *
 *     set    | 1 slot: span, span, -, - | 2 slots: span, -, -, - | 3 slots: -, -, -, - |
 *
 * A kept span's slots are used, so nobody else claims them. Its first descriptor is that of a free slot, so a
 * second free of the object is found. It counts as held, and as unused.
 *
 * A set must cost its threads no memory. So a thread makes its spans free before it takes slots while too few
 * free ones have memory, or a longer span. A purge makes the spans of all sets free. A purge by age does so
 * last, and the next one gives their memory back.
 *
 * Threads: any. No lock. A purge and a fork may come at any moment: a thread that stops between two steps
 * keeps at most the span in its hands from others.
 */
#ifndef KEPT_SPANS_H
#define KEPT_SPANS_H

#include "arena/arena.h"

enum {
    KEPT_SLOTS = 3, /* of the longest span that is kept */
    KEPT_EACH = 4,  /* spans of one length in a set */
    KEPT_SETS = 64  /* a descriptor's group says which */
};

/* Takes a span of n slots, whose descriptor becomes that of a large object of this kind. NULL: there is
 * none. It may hold old contents. */
struct superblock *kept_spans_take(unsigned n, enum superblock_kind kind);

/* Makes a new span one of the calling thread's set. */
void kept_spans_own(struct superblock *first);

/* Keeps the span of a large object that is being freed. False, and nothing has changed: it is too long, or
 * nothing may be kept. */
bool kept_spans_put(struct superblock *first);

/* Makes the kept spans of the calling thread's set free. */
void kept_spans_give_own(void);

/* Makes all kept spans free. */
void kept_spans_give_all(void);

/* The bytes of all kept spans. */
size_t kept_spans_bytes(void);

#endif
