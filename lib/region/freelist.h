/* SPDX-License-Identifier: Apache-2.0 */
/* freelist.h: a reap's free blocks by size.
 *
 * Free blocks are linked through their own memory:
 *
 *     list     0   1   2  ...  31 | 32        33        34        35
 *     units    1   2   3  ...  32 | 33..47    48..63    64..95    96..127   ...
 *
 * The sweep list has the chunks in which free neighbours may wait to be joined.
 *
 * Threads: the reap's own.
 */
#ifndef FREELIST_H
#define FREELIST_H

#include <assert.h>

#include "region/reap_chunk.h"

enum { REAP_SMALL_SWEEP = 32 * 1024 }; /* bytes; a chunk of this size is swept after fewer frees */

/* Sets heap mode if a free list holds a block, else region mode. */
static inline void reap_choose_mode(struct reap *reap)
{
    if (reap->freelists_used)
        reap_heap_mode(reap);
    else
        reap_region_mode(reap);
}

/* The free list for a block of this number of units. */
static inline size_t reap_freelist(size_t units)
{
    ASSERT(units != 0);
    if (LIKELY(units <= REAP_EXACT_LISTS)) return units - 1;
    size_t log = 63 - (size_t)__builtin_clzll(units);
    size_t list = REAP_EXACT_LISTS + (log - 5) * 2 + (units >> (log - 1) & 1);
    return list < REAP_FREELISTS ? list : REAP_FREELISTS - 1;
}

/* Puts a block on a free list. The prev of the first block there is undefined: so taking that block does not
 * touch the second one. */
static inline void reap_freelist_link(struct reap *reap, struct reap_tables *tables, struct reap_block *block,
                                      size_t list)
{
    ASSERT(list < REAP_FREELISTS && tables == reap_tables_of(reap) && (uintptr_t)block % REAP_UNIT == 0);
    struct reap_block *head = tables->freelists[list];
    ASSERT((head != NULL) == (reap->freelists_used >> list & 1) && head != block);
    block->next = head;
    if (LIKELY(head != NULL))
        head->prev = block;
    else
        reap->freelists_used |= (uint64_t)1 << list;
    tables->freelists[list] = block;
    reap_heap_mode(reap);
}

static inline void reap_freelist_push(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t units)
{
    ASSERT(chunk->owner == reap && unit >= chunk->first && unit + units <= reap_chunk_top(reap, chunk));
    ASSERT(bitmap_get(chunk->starts, unit) && reap_is_free(chunk, unit));
    struct reap_block *block = reap_address(chunk, unit);
    if (units > REAP_EXACT_LISTS) block->units = units;
    reap_freelist_link(reap, reap_tables_of(reap), block, reap_freelist(units));
}

/* Notes that the free list for a size has become empty, and returns `block`, its last block. */
void *reap_freelist_emptied(struct reap *reap, struct reap_block *block, size_t units)
    __attribute__((returns_nonnull));

static inline void reap_freelists_unlink(struct reap *reap, struct reap_block *block, size_t units)
{
    size_t list = reap_freelist(units);
    struct reap_tables *tables = reap_tables_of(reap);
    ASSERT(reap->freelists_used >> list & 1 && tables->freelists[list] != NULL);
    ASSERT(list < REAP_EXACT_LISTS || block->units == units);
    if (tables->freelists[list] == block) {
        tables->freelists[list] = block->next;
        if (!block->next) reap_freelist_emptied(reap, block, units);
        return;
    }
    assert(block->prev->next == block);
    block->prev->next = block->next;
    if (block->next) block->next->prev = block->prev;
}

/* Takes a free block off its free list and out of the bitmaps, because it becomes part of another block. */
static inline void reap_freelists_dissolve(struct reap *reap, struct reap_chunk *chunk, size_t unit,
                                           size_t end)
{
    ASSERT(unit < end && bitmap_get(chunk->starts, unit) && reap_is_free(chunk, unit));
    if (!chunk->draining) reap_freelists_unlink(reap, reap_address(chunk, unit), end - unit);
    bitmap_clear(chunk->frees, unit);
    bitmap_clear(chunk->starts, unit);
    chunk->live_above += (ptrdiff_t)(end - unit);
    ASSERT(reap_chunk_live(chunk) <= chunk->end_unit - chunk->first);
}

/* --- runs of free blocks --- */

/* Dissolves the free blocks from unit `end` on, up to a live block or to top. Returns where they end. */
static inline size_t reap_freelists_join(struct reap *reap, struct reap_chunk *chunk, size_t end, size_t top)
{
    ASSERT(top <= chunk->end_unit);
    while (end < top && bitmap_get(chunk->frees, end)) {
        size_t next = reap_block_end(reap, chunk, end);
        reap_freelists_dissolve(reap, chunk, end, next);
        end = next;
    }
    return end;
}

/* The least number of units freed between two sweeps of a chunk. So the frees pay for the sweep: it reads two
 * words of bitmaps for each of these units in a small chunk, and one for two of them in a big one, and each
 * block that it joins was freed or cut before. A small chunk is due earlier, because a small reap that finds
 * no block grows by much of itself. */
static inline size_t reap_sweep_step(const struct reap_chunk *chunk)
{
    return chunk->size / REAP_UNIT / (chunk->size <= REAP_SMALL_SWEEP ? 64 : 16);
}

/* The `sweep_below` of a chunk that has just been swept. */
static inline ptrdiff_t reap_freelists_next_sweep(const struct reap_chunk *chunk)
{
    size_t step = reap_sweep_step(chunk), live = reap_chunk_live(chunk);
    return live > step ? (ptrdiff_t)(live - step) : 1;
}

/* Counts units that are live because they were cut off a free block. A whole free block that is used again
 * cancels one earlier free, for the sweep. One that is cut does not, in a small chunk: else a small reap in
 * which a new object follows each free would come to no sweep. */
static inline void reap_count_cut(struct reap_chunk *chunk, size_t units)
{
    if (chunk->size <= REAP_SMALL_SWEEP)
        chunk->sweep_below += (ptrdiff_t)units;
    else
        chunk->live_above += (ptrdiff_t)units;
}

/* --- the sweep list --- */

static inline bool reap_chunk_is_to_sweep(const struct reap_chunk *chunk)
{
    return list_holds(&chunk->to_sweep);
}

static inline void reap_chunk_forget_sweep(struct reap_chunk *chunk)
{
    if (reap_chunk_is_to_sweep(chunk)) list_remove(&chunk->to_sweep);
}

#endif
