/* SPDX-License-Identifier: Apache-2.0 */
/* reap_free.h: heap mode: allocation from free blocks, and freeing.
 *
 * Free blocks are on free lists by size (freelist.h). freelists_used has a bit for each list that is not
 * empty, so one count of zeros finds the smallest fit.
 *
 * A free puts the block on its list, and that is all: a program asks for most blocks again at the same size.
 * Free neighbours are joined when no block fits. Until then their chunk waits on the sweep list: from the
 * first free on, and after a sweep when a 64th of a small chunk was freed, or a sixteenth of a big one
 * (reap_sweep_step). The bitmaps tell which blocks are neighbours, so a sweep does not read them. Two things
 * happen at once: a freed block that ends at the bump pointer moves the pointer back, and a chunk without
 * live objects goes back to the backend.
 *
 * Joining at each free was measured first: 390 instructions for a free and a malloc in a churn of
 * 10,000 objects of 16 to 512 bytes, against 130 this way (73 and 21 ns).
 *
 * A block that is cut for an object is cut for the next ones of that size too, up to 4 KiB.
 *
 * A small object takes a free block of its own size; if there is none, it takes the hole's next bytes. When
 * the hole is used up, the object is cut from a free block of 1.5 KiB or more, which has room for many. It is
 * cut from a smaller block only after free neighbours were joined, and if the reap is small, half of it is
 * free, or chunks are draining: to look for such a block for each object costs more than it saves in a big
 * reap. After bumping, the reap is in region mode until the next free.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_FREE_H
#define REAP_FREE_H

#include "region/freelist.h"

/* --- allocation ------------------------------------------------------------------------------ */

/* Returns true if an object of that number of units looks for a free block first, and takes the hole only if
 * there is none. */
static inline bool reap_free_is_better(const struct reap *reap, size_t units, size_t hole)
{
    return hole < units || units > REAP_EXACT_LISTS || reap->freelists_used >> (units - 1) & 1;
}

/* Makes an object of `units` units from a free block. NULL: no free block is big enough. */
void *reap_free_take(struct reap *reap, size_t units);

/* The last try before the reap grows. Takes any block that fits if the reap is small or half of the memory in
 * use is free, and takes draining chunks into use again. */
void *reap_free_take_last(struct reap *reap, size_t units);

/* Takes the first block of an exact list. NULL: the list is empty, or the chunk cache does not have the
 * block's chunk. Nothing here waits for the block's own words: their cache line may be far away. */
static ALWAYS_INLINE void *reap_free_take_exact(struct reap *reap, size_t size)
{
    struct reap_tables *tables = reap->tables;
    size_t list = (size - 1) / REAP_UNIT;
    struct reap_block *block = tables->freelists[list];
    struct reap_chunk *chunk = *reap_cached_chunk(tables, block);
    size_t unit = reap_unit(chunk, block);
    if (unit >= chunk->fast_free_end) return NULL;
    ASSERT(chunk->owner == reap && reap_is_free(chunk, unit) && bitmap_get(chunk->starts, unit));
    struct reap_block *next = block->next;
    tables->freelists[list] = next;
    chunk->live_above += (ptrdiff_t)list + 1;
    ASSERT(reap_chunk_live(chunk) <= chunk->end_unit - chunk->first);
    bitmap_half *frees = bitmap_half_of(chunk->frees, unit);
    *frees = bitmap_half_clear(*frees, unit);
    return LIKELY(next != NULL) ? block : reap_freelist_emptied(reap, block, list + 1);
}

/* Grows the object that ends at `end` by extra units, into the hole or the free blocks behind it. False:
 * there is too little room. */
bool reap_free_grow(struct reap *reap, struct reap_chunk *chunk, size_t end, size_t extra);

/* --- freeing --------------------------------------------------------------------------------- */

/* Frees units [unit, end) of a regular chunk: a whole block, or the end of one. */
void reap_free_block(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end);

/* The rare work after a free: puts the chunk on the sweep list, drains it, or gives it back when nothing
 * lives in it. */
void reap_free_rest(struct reap *reap, struct reap_chunk *chunk);

/* Subtracts units from a chunk's live ones. In the current chunk the last object lies always at the bump
 * pointer, and its free does not come here: so this empties other chunks only. */
static inline void reap_free_count(struct reap *reap, struct reap_chunk *chunk, size_t units)
{
    ASSERT(reap_chunk_live(chunk) >= units && units != 0);
    if (UNLIKELY((chunk->live_above -= (ptrdiff_t)units) < 0)) reap_free_rest(reap, chunk);
}

/* Checks and frees most objects in one go: a small block in a chunk that the chunk cache has, and with
 * another block behind it, so that it does not end at the bump pointer. The rotated offset puts addresses
 * that are not aligned beyond any chunk. False: it is no such object, or no object at all, and nothing has
 * changed. */
static ALWAYS_INLINE bool reap_free_fast(struct reap *reap, void *object)
{
    struct reap_tables *tables = reap->tables;
    struct reap_chunk *chunk = *reap_cached_chunk(tables, object);
    size_t offset = (size_t)((char *)object - (char *)chunk), unit = offset / 16 | offset << 60;
    if (UNLIKELY(unit >= chunk->fast_free_end)) return false;
    uint64_t window = bitmap_window(chunk->starts, unit);
    bitmap_half *half = bitmap_half_of(chunk->frees, unit), frees = *half;
    if (UNLIKELY(!bitmap_shift_out(&window) || !(uint32_t)window)) return false;
    if (UNLIKELY(bitmap_half_test_and_set(&frees, unit))) return false;
    ASSERT(chunk->owner == reap && unit >= chunk->first && chunk->kind == REAP_REGULAR);
    *half = frees;
    size_t list = bitmap_first((uint32_t)window);
    ASSERT(unit + list + 1 <= reap_chunk_top(reap, chunk));
    if (LIKELY(!chunk->draining)) reap_freelist_link(reap, tables, object, list); /* else it is on no list */
    reap_free_count(reap, chunk, list + 1);
    return true;
}

/* Checks and frees a small object that is the last one before the hole, which then begins at the object. It
 * needs neither the chunk cache nor the second bitmap. An address shortly before the hole need not lie in the
 * chunk, and there may be no chunk: so units are signed here. False, and nothing has changed: it is no such
 * object, or there is more to do, because a free block comes before it, or no block. */
static inline bool reap_free_last(struct reap *reap, void *object)
{
    struct reap_chunk *chunk = reap->current;
    size_t before = (uintptr_t)reap->bump - (uintptr_t)object, units = before / REAP_UNIT | before << 60;
    ptrdiff_t unit = (ptrdiff_t)((uintptr_t)object - (uintptr_t)chunk) >> 4;
    if (units - 1 >= REAP_EXACT_LISTS || !chunk) return false;
    if (reap->flags & REAP_SPECIAL || unit <= (ptrdiff_t)chunk->first) return false;
    if ((bitmap_window(chunk->starts, (size_t)unit) & UINT32_MAX) != 1) return false;
    if (reap_is_free(chunk, bitmap_previous(chunk->starts, (size_t)unit - 1, chunk->first))) return false;
    ASSERT(chunk->owner == reap && (size_t)unit + units == reap_chunk_top(reap, chunk));
    reap_chunk_note_high(chunk, (size_t)unit + units);
    reap_shrink_begin(chunk);
    bitmap_clear(chunk->starts, (size_t)unit);
    reap->bump = object;
    reap_shrink_end(chunk);
    reap_choose_mode(reap);
    return true;
}

/* Adds the object's chunk to the chunk cache, and tries reap_free_fast again. */
static inline bool reap_free_known(struct reap *reap, void *object)
{
    return object && reap_chunk_find(reap, object) && reap_free_fast(reap, object);
}

/* Gives the current chunk back when it is empty and too big beside the rest of the reap. */
void reap_free_settle(struct reap *reap);

/* Drains all chunks, so that each loses objects until the reap needs it, and gives back an empty current
 * chunk. */
void reap_free_trim(struct reap *reap);

/* Dissolves all blocks of a regular chunk from a unit on, where a block or the hole starts. It leaves no bit
 * there, and the units count as live, as those of a hole do. */
void reap_free_unwind(struct reap *reap, struct reap_chunk *chunk, size_t from);

/* The two steps of reap_free_unwind, for when an older object lies before these blocks. The first step takes
 * free blocks off their lists, and returns where blocks end. The second one clears the bits, a whole word at
 * a time: so another thread never sees a later bit without those before it. The hole must move to there
 * before the same reap_shrink_end. */
size_t reap_free_unlist(struct reap *reap, struct reap_chunk *chunk, size_t from);
void reap_free_wipe(struct reap_chunk *chunk, size_t from, size_t top);

/* Gives back a chunk with all its objects. */
void reap_free_discard(struct reap *reap, struct reap_chunk *chunk);

/* After a mark is closed: does the work that the mark has put off in its chunk. */
void reap_free_unmark(struct reap *reap, struct reap_chunk *chunk);

/* Gives up the hole: its rest becomes a free block, or is lost when it is too short. */
void reap_free_leave_hole(struct reap *reap);

#endif
