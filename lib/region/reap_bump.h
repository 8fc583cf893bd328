/* SPDX-License-Identifier: Apache-2.0 */
/* reap_bump.h: bump allocation from the hole.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_BUMP_H
#define REAP_BUMP_H

#include "region/reap_chunk.h"

/* Sets the start bit of what follows an object, at `next`. The fast path writes nothing else per object. Each
 * change of a word waits for the one before: so it changes halves, which have half as many objects. */
static inline void reap_mark_start(const struct reap *reap, const char *next)
{
    ASSERT((uintptr_t)next % REAP_UNIT == 0);
    bitmap_half *half = (bitmap_half *)(reap->starts + (uintptr_t)next / 512 * 4);
    *half |= (bitmap_half)1 << ((uintptr_t)next / REAP_UNIT % 32);
}

/* Takes an object of at most the hole's bytes from the hole: all ways of the library bump here. */
static ALWAYS_INLINE void *reap_bump_over(struct reap *reap, size_t size)
{
    char *object = reap->bump, *next = object + ((size - 1) | (REAP_UNIT - 1)) + 1;
    ASSERT(next <= reap->bump_max && bitmap_get(reap->current->starts, reap_unit(object)));
    reap_mark_start(reap, next);
    reap->bump = next;
    return object;
}

/* Makes [from, end) of a chunk the hole; there must be no hole before. A block starts at both. */
static inline void reap_chunk_bump_in(struct reap *reap, struct reap_chunk *chunk, size_t from, size_t end)
{
    ASSERT(chunk->owner == reap && from >= chunk->first && from <= end && end <= chunk->end_unit);
    ASSERT(bitmap_get(chunk->starts, from) && bitmap_get(chunk->starts, end));
    reap->current = chunk;
    reap->bump = reap_address(from);
    reap->bump_max = reap_address(end);
    reap->starts = (uintptr_t)chunk->starts;
}

/* There is no hole: the one value for it, in which nothing fits. */
static inline void reap_chunk_bump_nowhere(struct reap *reap)
{
    reap->current = NULL;
    reap->bump = reap->end = reap->bump_max = NULL;
}

/* Lets fast paths bump up to bump_max in region mode, and not at all in heap mode. */
static inline void reap_choose_mode(struct reap *reap)
{
    reap->end = UNLIKELY(reap->heap) ? reap->bump : reap->bump_max;
}

#endif
