/* SPDX-License-Identifier: Apache-2.0 */
/* best_place.h: the search for slots for a large object, and the pieces of its span.
 *
 * A span may go on in the next arenas; a piece is its part of one arena. The search prefers slots that have
 * memory: otherwise unused memory would stay while the OS fills clean slots. So the best place lacks the
 * least memory; of several such places, the one in the smallest gap, or in the largest for an object that
 * grows. Threads: any; no lock.
 */
#ifndef BEST_PLACE_H
#define BEST_PLACE_H

#include "arena/arena_table.h"

/* The next piece is found by its address: once slots of it are free, its struct may be of others. */
struct piece {
    struct arena *arena;
    char *base;           /* of the arena */
    unsigned first, left; /* slots: the piece's first, and those of it and of the pieces behind */
};

/* The n slots from the `at`-th slot behind the start of an arena on. */
static inline struct piece piece_at(const struct arena *arena, unsigned at, unsigned n)
{
    char *base = arena->base + at / ARENA_SLOTS * (size_t)ARENA;
    ASSERT(n >= 1);
    return (struct piece){pagemap_find(base), base, at % ARENA_SLOTS, n};
}

static inline unsigned piece_slots(const struct piece *piece)
{
    unsigned most = ARENA_SLOTS - piece->first;
    return piece->left < most ? piece->left : most;
}

static inline uint64_t piece_mask(const struct piece *piece)
{
    return arena_slot_mask(piece->first, piece_slots(piece));
}

static inline void piece_next(struct piece *piece)
{
    piece->left -= piece_slots(piece);
    piece->first = 0;
    if (piece->left == 0) return;
    piece->base += ARENA;
    piece->arena = pagemap_find(piece->base);
}

/* Claimed slots, from the first one's arena on. */
struct run {
    struct arena *arena; /* NULL: none */
    int first;
};

/* Claims n slots at the best place; from slot `first` of the arena at `base`, if they are there and free. */
struct run arena_claim_best(unsigned n, unsigned alignment, bool grows);
bool arena_claim_at(char *base, unsigned first, unsigned n);

/* Makes claimed pieces free again, until `left` slots are left. */
void arena_unclaim(struct piece piece, unsigned left);

#endif
