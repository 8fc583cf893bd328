/* SPDX-License-Identifier: Apache-2.0 */
/* reap_free.h: a reap as a heap: its free blocks.
 *
 * Free blocks are kept in lists by size (freelist.h).
 *
 * A bit in freelists_used for each list that holds something makes finding the smallest fit one count of
 * zeros. Freeing puts a block in its list and is done; most are asked for again at the same size. Free
 * neighbours join when no block fits: chunks in which something was freed, big ones in which a
 * sixteenth was, wait on the `dirty` list to be swept, and the bitmaps tell neighbours without reading
 * them. A block that ends at the bump pointer moves the pointer back at once, and a chunk in which
 * nothing lives goes back at once.
 *
 * Joining at each free was measured first: 390 instructions for a free and a malloc in a churn of
 * 10,000 objects of 16 to 512 bytes, against 130 this way (73 and 21 ns).
 *
 * A block that is cut for an object is cut for the next ones of that size too, up to 4 KiB.
 *
 * A small object takes a free block of its own size, else the bump pointer moves on; when the hole is used
 * up it takes of free blocks of 1.5 KiB and more, which do for many, and of smaller ones only when what is
 * free was joined, and half of the reap is free or chunks are draining: to look for a block for each object
 * costs more than it saves. After bumping the reap is in region mode until the next free.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_FREE_H
#define REAP_FREE_H

#include "region/freelist.h"

/* --- allocation ------------------------------------------------------------------------------ */

/* Is a free block to be looked for before the hole? */
static inline bool reap_free_is_better(const struct reap *reap, size_t units, size_t hole)
{
    return hole < units || units > REAP_EXACT_LISTS || reap->freelists_used >> (units - 1) & 1;
}

/* A free block of so many units made an object of, or NULL when none is big enough. */
void *reap_free_take(struct reap *reap, size_t units);

/* The same before the reap grows: any block that fits, if half of what is in use is free, or what draining
 * chunks have. */
void *reap_free_take_last(struct reap *reap, size_t units);

/* The same for the first block of the list for a size up to that of the exact ones, in a chunk that the
 * reap's table knows; or NULL. Nothing here waits for what is in the block: its line may be far away. */
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
    chunk->live_units += list + 1;
    ASSERT(chunk->live_units <= chunk->end_unit - chunk->first);
    bitmap_half *frees = bitmap_half_of(chunk->frees, unit);
    *frees = bitmap_half_clear(*frees, unit);
    return LIKELY(next != NULL) ? block : reap_freelist_emptied(reap, block, size);
}

/* Grows the object that ends at `end` by extra units, at the bump pointer or into the free memory
 * behind it. */
bool reap_free_grow(struct reap *reap, struct reap_chunk *chunk, size_t end, size_t extra);

/* --- freeing --------------------------------------------------------------------------------- */

/* Frees units [unit, end) of a regular chunk: a whole block, or the end of one. */
void reap_free_block(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end);

/* What is rarely due after a free: noting that the chunk wants a sweep, giving it back when nothing
 * lives in it. */
void reap_free_rest(struct reap *reap, struct reap_chunk *chunk);

/* Takes units off what lives in a chunk. The last object of the current chunk is always the one at the
 * bump pointer, so that chunk is not emptied by another. */
static inline void reap_free_count(struct reap *reap, struct reap_chunk *chunk, size_t units)
{
    ASSERT(chunk->live_units >= units && units != 0);
    if (UNLIKELY((chunk->live_units -= units) < chunk->sweep_below)) reap_free_rest(reap, chunk);
}

/* The checks and the free of most objects in one: a small block with another behind it, so that it does not
 * end at the bump pointer, in a chunk that the reap's table knows. The offset is rotated, so that what is not
 * aligned lies beyond any chunk. False: it is no such object, or none at all, and nothing is done. */
static ALWAYS_INLINE bool reap_free_fast(struct reap *reap, void *object)
{
    struct reap_tables *tables = reap->tables;
    struct reap_chunk *chunk = *reap_cached_chunk(tables, object);
    size_t offset = (size_t)((char *)object - (char *)chunk), unit = offset / 16 | offset << 60;
    if (UNLIKELY(unit >= chunk->fast_free_end)) return false;
    uint64_t window = bitmap_window(chunk->starts, unit);
    bitmap_half *half = bitmap_half_of(chunk->frees, unit), frees = *half;
    uint32_t behind = (uint32_t)(window >> 1);
    if (UNLIKELY(!(window & 1) || frees >> unit % 32 & 1 || !behind)) return false;
    ASSERT(chunk->owner == reap && unit >= chunk->first && chunk->kind == REAP_REGULAR);
    *half = bitmap_half_set(frees, unit);
    unsigned list = (unsigned)__builtin_ctz(behind);
    ASSERT(unit + list + 1 <= reap_chunk_top(reap, chunk));
    if (LIKELY(!chunk->draining)) reap_freelist_link(reap, tables, object, list); /* else it is on no list */
    reap_free_count(reap, chunk, list + 1);
    return true;
}

/* The same of a small object that is the last one before the hole, which gets it back; but where a free block
 * comes before it, or none, there is more to do. No table is asked, and no second bitmap needed. What lies
 * shortly before the hole need not lie in the chunk, and there may be none: units are signed here. */
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

/* The same in a chunk that the table did not know until now. */
static inline bool reap_free_known(struct reap *reap, void *object)
{
    return object && reap_chunk_find(reap, object) && reap_free_fast(reap, object);
}

/* Gives the current chunk back when it is empty and more than the rest of the reap is worth. */
void reap_free_settle(struct reap *reap);

/* Takes back the blocks of a regular chunk from a unit on, where a block starts or the hole: no bit is left,
 * and the units count as live as those of a hole do. */
void reap_free_unwind(struct reap *reap, struct reap_chunk *chunk, size_t from);

/* The same in two steps, where an older object lies before these blocks: takes what is free out of the lists,
 * and returns where blocks end; then wipes out the bits, those of a word at once, so that nobody ever sees a
 * later one without those before it. The hole must follow in the same retreat. */
size_t reap_free_unlist(struct reap *reap, struct reap_chunk *chunk, size_t from);
void reap_free_wipe(struct reap_chunk *chunk, size_t from, size_t top);

/* Gives back a chunk with all that is in it. */
void reap_free_discard(struct reap *reap, struct reap_chunk *chunk);

/* Does for a chunk, which a mark has left, what the mark has put off. */
void reap_free_unmark(struct reap *reap, struct reap_chunk *chunk);

/* Gives up the hole: what is left of it becomes a free block, or is lost when it is not worth one. */
void reap_free_leave_hole(struct reap *reap);

#endif
