/* SPDX-License-Identifier: Apache-2.0 */
/* freelist.h: a reap's free blocks by size.
 *
 * They are linked through their own memory:
 *
 *     bins     0   1   2  ...  31 | 32        33        34        35
 *     units    1   2   3  ...  32 | 33..47    48..63    64..95    96..127   ...
 *
 * And the dirty list: chunks whose free neighbours may not be joined.
 *
 * Threads: the reap's own.
 */
#ifndef FREELIST_H
#define FREELIST_H

#include <assert.h>

#include "region/reap_chunk.h"

enum { REAP_SMALL_SWEEP = 32 * 1024 }; /* bytes; sweeping a chunk up to this costs less than it may save */

/* Heap mode while something is free. */
static inline void reap_choose_mode(struct reap *reap)
{
    if (reap->bins_used)
        reap_heap_mode(reap);
    else
        reap_region_mode(reap);
}

/* The bin for a block of so many units. */
static inline size_t reap_bin(size_t units)
{
    ASSERT(units != 0);
    if (LIKELY(units <= REAP_EXACT_BINS)) return units - 1;
    size_t log = 63 - (size_t)__builtin_clzll(units);
    size_t bin = REAP_EXACT_BINS + (log - 5) * 2 + (units >> (log - 1) & 1);
    return bin < REAP_BINS ? bin : REAP_BINS - 1;
}

/* Puts a block in a bin. The first one there has no prev to speak of: so taking it does not touch the
 * second one. */
static inline void reap_bin_link(struct reap *reap, struct reap_heap *heap, struct reap_block *block,
                                 size_t bin)
{
    ASSERT(bin < REAP_BINS && heap == reap_tables(reap) && (uintptr_t)block % REAP_UNIT == 0);
    struct reap_block *head = heap->bins[bin];
    ASSERT((head != NULL) == (reap->bins_used >> bin & 1) && head != block);
    block->next = head;
    if (LIKELY(head != NULL))
        head->prev = block;
    else
        reap->bins_used |= (uint64_t)1 << bin;
    heap->bins[bin] = block;
    reap_heap_mode(reap);
}

static inline void reap_bin_push(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t units)
{
    ASSERT(chunk->owner == reap && unit >= chunk->first && unit + units <= reap_chunk_top(reap, chunk));
    ASSERT(bitmap_get(chunk->starts, unit) && reap_is_free(chunk, unit));
    struct reap_block *block = reap_address(chunk, unit);
    if (units > REAP_EXACT_BINS) block->units = units;
    reap_bin_link(reap, reap_tables(reap), block, reap_bin(units));
}

/* Notes that the bin for a size holds nothing any more, and returns the block that was the last. */
void *reap_bin_emptied(struct reap *reap, struct reap_block *block, size_t size)
    __attribute__((returns_nonnull));

static inline void reap_bins_unlink(struct reap *reap, struct reap_block *block, size_t units)
{
    size_t bin = reap_bin(units);
    struct reap_heap *heap = reap_tables(reap);
    ASSERT(reap->bins_used >> bin & 1 && heap->bins[bin] != NULL);
    ASSERT(bin < REAP_EXACT_BINS || block->units == units);
    if (heap->bins[bin] == block) {
        heap->bins[bin] = block->next;
        if (!block->next) reap_bin_emptied(reap, block, units * REAP_UNIT);
        return;
    }
    assert(block->prev->next == block);
    block->prev->next = block->next;
    if (block->next) block->next->prev = block->prev;
}

/* Takes a free block out of the bins and the bitmaps, because it becomes part of another. */
static inline void reap_bins_dissolve(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end)
{
    ASSERT(unit < end && bitmap_get(chunk->starts, unit) && reap_is_free(chunk, unit));
    if (!chunk->closed) reap_bins_unlink(reap, reap_address(chunk, unit), end - unit);
    bitmap_clear(chunk->frees, unit);
    bitmap_clear(chunk->starts, unit);
    chunk->live_units += end - unit;
    ASSERT(chunk->live_units <= chunk->limit - chunk->first);
}

/* --- runs of free blocks --- */

/* Where a run of free blocks that starts at unit ends; all but the first are dissolved. */
static inline size_t reap_bins_join(struct reap *reap, struct reap_chunk *chunk, size_t end, size_t top)
{
    ASSERT(top <= chunk->limit);
    while (end < top && bitmap_get(chunk->frees, end)) {
        size_t next = reap_block_end(reap, chunk, end);
        reap_bins_dissolve(reap, chunk, end, next);
        end = next;
    }
    return end;
}

/* When a chunk that has been swept is due again: a small one with the next free, a big one when a
 * sixteenth of it was freed, so that a sweep is paid for by what was freed. */
static inline size_t reap_bins_next_notice(const struct reap_chunk *chunk)
{
    size_t step = chunk->size / REAP_UNIT / 16;
    if (chunk->size <= REAP_SMALL_SWEEP) return SIZE_MAX;
    return chunk->live_units > step ? chunk->live_units - step : 1;
}

/* --- the dirty list --- */

static inline bool reap_is_dirty(const struct reap_chunk *chunk) { return list_holds(&chunk->dirty); }

static inline void reap_forget_dirty(struct reap_chunk *chunk)
{
    if (reap_is_dirty(chunk)) list_remove(&chunk->dirty);
}

#endif
