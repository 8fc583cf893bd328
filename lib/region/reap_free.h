/* SPDX-License-Identifier: Apache-2.0 */
/* reap_free.h: heap mode: freeing, and allocation from what was freed.
 *
 * The free lists are a cache of what the bitmaps say. A free clears the object's live bit, which is the whole
 * check, and puts the gap onto the list of its size, above 63 units of a range of sizes; an allocation takes
 * it from there, or cuts it, and sets the bit.
 *
 *     free lists   by units:  1   2   3  ...  63 | 64..95    96..127   128..191   192..255   ...
 *
 * A *flush* drops all lists, when half of the reap was freed onto them, when an eighth of it lies in chunks
 * without live objects, or before the reap grows. These chunks go back; the others are quiet. When the hole
 * is used up, the next quiet chunk is *swept*: a few operations on each word of its bitmaps give its gaps,
 * already joined, and each gap is the next hole.
 *
 *     region ──> listed ──flush──> quiet ──sweep──> swept ──last gap──> listed
 *                                    └──last free──> given back
 *
 * While a mark is open, gaps are not used: all chunks with live bits are quiet. They stay so when it is
 * closed, and the hole stays too: so a mark drops lists only where chunks were listed since the last one.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_FREE_H
#define REAP_FREE_H

#include "region/reap_dead.h"

/* Returns true if fast paths may see the tables of heap mode. */
static inline bool reap_may_show_tables(const struct reap *reap)
{
    return reap->heap && reap->own && !(reap->flags & (REAP_SPECIAL | REAP_UNMAPPED));
}

static inline size_t reap_free_list(size_t units)
{
    ASSERT(units != 0);
    if (LIKELY(units <= REAP_EXACT_LISTS)) return units;
    size_t log = 63 - (size_t)__builtin_clzll(units);
    size_t list = 1 + REAP_EXACT_LISTS + (log - 6) * 2 + (units >> (log - 1) & 1);
    return list < REAP_FREELISTS ? list : REAP_FREELISTS - 1;
}

/* --- allocation ------------------------------------------------------------------------------ */

/* Takes the first gap of an exact list. NULL: the list is empty. */
static ALWAYS_INLINE void *reap_free_take_exact(struct reap *reap, size_t units)
{
    struct reap_tables *tables = reap->tables;
    struct reap_block **list = &tables->freelists[units], *block = *list;
    if (!block) return NULL;
    *list = block->next;
    tables->budget.room += (ptrdiff_t)units;
    *chunk_map_lives(block) |= (uint32_t)1 << (uintptr_t)block / REAP_UNIT % 32;
    return block;
}

/* Takes an object of at most the hole's bytes from the hole, in heap mode. */
static inline void *reap_free_bump(struct reap *reap, size_t size)
{
    void *object = reap_bump_over(reap, size);
    ASSERT(reap->heap && reap->current->lives);
    bitmap_half *lives = (bitmap_half *)reap->current->lives + (uintptr_t)object / 512;
    *lives |= (bitmap_half)1 << (uintptr_t)object / REAP_UNIT % 32;
    reap->end = reap->bump;
    return object;
}

/* Makes an object of `units` units: the slow path of both modes. NULL: no memory (ENOMEM). */
void *reap_free_take(struct reap *reap, size_t units);

/* Takes a new chunk with room for units, and makes it the hole. False: no memory (ENOMEM). */
bool reap_free_grow_hole(struct reap *reap, size_t units);

/* Grows the object [unit, end) into the hole behind it. False: there is none, or too little. */
bool reap_free_grow(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end, size_t extra);

/* --- freeing --------------------------------------------------------------------------------- */

void reap_free_object(struct reap *reap, struct reap_chunk *chunk, size_t unit);

/* Makes a gap of units [unit, end) of a regular chunk: the end of a live object. */
void reap_free_end(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end);

/* Makes a gap of the beginning of a live object, which then begins at `to`. */
void reap_free_begin(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t to);

/* Drops the free lists and the hole; gives back empty chunks. The second call does so if that is due. */
void reap_free_flush(struct reap *reap);
void reap_free_look(struct reap *reap);

/* After a free in a quiet chunk, near a unit: gives the chunk back if it was the last object. */
void reap_free_quiet(struct reap *reap, struct reap_chunk *chunk, size_t unit);

/* Returns true if the sweep has passed this unit of a chunk: a gap there goes onto a list again. */
static inline bool reap_free_is_swept(const struct reap_chunk *chunk, size_t unit)
{
    return chunk->state == REAP_CHUNK_SWEPT && unit < chunk->top;
}

/* Returns true if a unit begins at an address whose entry is the reap: in a listed chunk. Takes any value. */
static ALWAYS_INLINE bool entry_is_reap(const struct reap *reap, const void *object)
{
    uintptr_t same =
        (uintptr_t)object ^ (uintptr_t)reap; /* has the object's last four bits: a reap's are 0 */
    return LIKELY((same & (UINTPTR_MAX << 32 | (REAP_UNIT - 1))) == 0) &&
           LIKELY(*chunk_map_entry(object) == (uint32_t)(uintptr_t)reap);
}

/* The units of a live object of a mapped chunk; 0: too many for the eight bytes of start bits from the
 * object's own byte on. These tell up to 56 units of each object, and up to 63 of some. */
static ALWAYS_INLINE size_t reap_free_units_at(const void *object)
{
    uint64_t window;
    memcpy(&window, chunk_map_bits + (uint32_t)(uintptr_t)object / REAP_UNIT / 8, sizeof window);
    uint64_t behind = window >> (uintptr_t)object / REAP_UNIT % 8 >> 1;
    if (UNLIKELY(behind == 0)) return 0;
    size_t units = bitmap_first(behind) + 1;
    static_assert(REAP_EXACT_LISTS == 63, "a list for each length that a word of start bits can tell");
    if (units == 0 || units > REAP_EXACT_LISTS) __builtin_unreachable(); /* so callers need no second test */
    return units;
}

/* Puts a gap onto an exact list. */
static ALWAYS_INLINE void reap_free_push(struct reap *reap, void *object, size_t units)
{
    struct reap_tables *tables = reap->tables;
    struct reap_block *block = object;
    block->next = tables->freelists[units];
    tables->freelists[units] = block;
    if (UNLIKELY((tables->budget.room -= (ptrdiff_t)units) < 0)) reap_free_look(reap);
}

/* Checks and frees most objects in one go: a small one, in a listed chunk. False: it is no such object, or no
 * object at all, and nothing has changed. */
static ALWAYS_INLINE bool reap_free_fast(struct reap *reap, void *object)
{
    if (!entry_is_reap(reap, object)) return false;
    uint32_t *lives = chunk_map_lives(object), half = *lives;
    if (UNLIKELY(!bitmap_half_test_and_clear(&half, (uintptr_t)object / REAP_UNIT))) return false;
    size_t units = reap_free_units_at(object);
    if (UNLIKELY(units == 0)) return false;
    *lives = half;
    reap_free_push(reap, object, units);
    return true;
}

/* The chunk that is an object's entry. */
static inline struct reap_chunk *reap_chunk_of_entry(const void *object, uint32_t entry)
{
    return (struct reap_chunk *)(((uintptr_t)object >> 32 << 32) + entry - 1);
}

/* Checks and frees an object whose entry is its chunk: one with live bits that is quiet or swept, or is
 * hidden from fast paths. False: it is no such object, and nothing has changed. */
static inline bool reap_free_by_chunk(struct reap *reap, void *object)
{
    uint32_t entry = *chunk_map_entry(object);
    if (!(entry & 1) || reap->flags & REAP_SPECIAL || !chunk_map_has(object)) return false;
    struct reap_chunk *chunk = reap_chunk_of_entry(object, entry);
    size_t unit = reap_unit(object);
    if (chunk->owner != reap) return false;
    uint32_t *lives = chunk_map_lives(object), half = *lives;
    if (!bitmap_half_test_and_clear(&half, unit) || (uintptr_t)object % REAP_UNIT) return false;
    if (chunk->state == REAP_CHUNK_QUIET) {
        *lives = half;
        if (UNLIKELY(half == 0)) reap_free_quiet(reap, chunk, unit);
        return true;
    }
    size_t units = reap_free_units_at(object);
    bool is_listed = reap->tables != &reap_no_tables && reap_free_is_swept(chunk, unit);
    if (is_listed && units != 0) {
        *lives = half;
        reap_free_push(reap, object, units);
        return true;
    }
    reap_free_object(reap, chunk, unit);
    return true;
}

/* Returns true if the hole may begin at the object before it: no open mark lies between. */
static inline bool reap_free_may_bump_back(const struct reap *reap, const char *object)
{
    return !(object < reap->mark_at && reap->mark_at <= reap->bump);
}

/* After DEAD_FREES frees in region mode: begins heap mode. */
void reap_free_begin_heap(struct reap *reap);

/* Makes the block [unit, end) of the current chunk in region mode a dead one. */
static ALWAYS_INLINE void reap_free_set_dead(struct reap *reap, struct reap_chunk *chunk, size_t unit,
                                             size_t end)
{
    reap_dead_set(reap, chunk, unit, end);
    reap_dead_ask(reap, chunk);
    if (UNLIKELY(chunk->dead_list.frees >= DEAD_FREES)) reap_free_begin_heap(reap);
}

/* Checks and frees an object of the current chunk in region mode: the hole begins at the last one then, and
 * another one is dead. False, and nothing has changed: it is no such object. The start bits are read as they
 * were written, by halves: a load of both halves would wait for the store of one. */
static inline bool reap_free_in_region(struct reap *reap, void *object)
{
    struct reap_chunk *chunk = reap->current;
    if (!chunk || reap->heap || reap->flags & (REAP_LIMITED | REAP_WATCHED)) return false;
    size_t unit = reap_unit(object), top = reap_unit(reap->bump);
    if (unit < chunk->first || unit >= top || (uintptr_t)object % REAP_UNIT) return false;
    const bitmap_half *half = (const bitmap_half *)chunk->starts + unit / 32;
    bitmap_half behind = *half >> unit % 32;
    if (!(behind & 1) || (chunk->dead != 0 && reap_dead_at(chunk, unit))) return false;
    size_t end = unit - unit % 32;
    if (LIKELY((behind >>= 1) != 0)) {
        end = unit + 1;
    } else {
        do end += 32;
        while ((behind = *++half) == 0);
    }
    end += bitmap_first(behind);
    ASSERT(end <= top);
    if (end != top) {
        if (UNLIKELY(!reap_dead_may_be_set(reap))) return false;
        reap_free_set_dead(reap, chunk, unit, end);
        return true;
    }
    if (UNLIKELY(reap->mark_at != NULL) && !reap_free_may_bump_back(reap, object)) return false;
    if (top != chunk->end_unit) bitmap_clear(chunk->starts, top);
    if (top > chunk->high) chunk->high = top;
    reap->bump = object;
    if (UNLIKELY(chunk->dead != 0)) reap_dead_absorb(reap, chunk);
    return true;
}

/* Drops the lists, so that chunks without live objects go back, and the current chunk if nothing is in it. */
void reap_free_trim(struct reap *reap);

void reap_free_leave_hole(struct reap *reap);

/* --- marks, limits, other reaps -------------------------------------------------------------- */

/* Before a mark is opened: no gap may be used until it is closed. The hole stays. */
void reap_free_mark(struct reap *reap);

/* After the last mark is closed: does the work that it has put off. */
void reap_free_unmark(struct reap *reap);

/* Frees all objects of a regular chunk between two units, where blocks start: one gap is left. */
void reap_free_wipe(struct reap_chunk *chunk, size_t from, size_t to);

/* Hides the tables from fast paths: frees take slow paths from now on, and allocations too, unless they bump.
 * Shows them again, if the reap is in heap mode and has none of REAP_SPECIAL. */
void reap_hide_tables(struct reap *reap);
void reap_show_tables(struct reap *reap);

#endif
