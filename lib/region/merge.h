/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h: a reap without a first chunk of its own, and the way of its chunks into another reap.
 *
 * A shared reap has a bare reap for each heap id but one (reap_shard.h). A bare reap is no reap of the
 * program's. Its memory begins with the header of a first chunk that has no room, so that all code for reaps
 * finds one there. This header leads to the reap for which the bare reap allocates:
 *
 *     bare reap     | header: size 0, prev: the whole reap, next: its face | struct reap | a word of zeros |
 *
 * Threads: those of the two reaps.
 */
#ifndef MERGE_H
#define MERGE_H

#include "region/reap_chunk.h"

struct reap_bare {
    union {
        struct reap_chunk first;
        char header[REAP_HEADER];
    };
    struct reap reap;
    uint64_t none[2]; /* the start bits of the first chunk */
};
static_assert(offsetof(struct reap_bare, reap) == REAP_HEADER, "a reap follows its first chunk's header");

/* Makes an empty bare reap of uninitialized memory. Its chunks have the size and the source of the whole
 * reap's, which must be Hoard. */
void reap_bare_begin(struct reap_bare *bare, struct reap *whole, void *face);

/* Gives an empty bare reap its first chunk with room, which stays until a merge, as a reap's own first chunk
 * does. False: no memory (ENOMEM). */
bool reap_bare_begin_chunk(struct reap *reap);

static inline bool reap_bare_needs_chunk(const struct reap *reap)
{
    const struct reap_chunk *first = reap_first_chunk(reap);
    return first->size == 0 && first->floor == 0;
}

/* Moves all chunks of a bare reap into the whole reap. Free blocks are in no free list there: their chunks
 * drain (drain.h), until the reap needs them. */
void reap_bare_merge(struct reap *bare, struct reap *whole);

#endif
