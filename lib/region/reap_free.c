/* SPDX-License-Identifier: Apache-2.0 */
/* reap_free.c: heap mode: allocation from free blocks, and freeing. */
#include "region/reap_free.h"

#include <assert.h>
#include <limits.h>

#include "region/drain.h"

enum {
    TRIES = 8,                   /* blocks to look at in a list whose blocks may be too small */
    BATCH = 4096,                /* bytes of free blocks to cut beside an object, at most */
    RUNS = REAP_EXACT_LISTS + 3, /* the first list of blocks of 1.5 KiB and more */
    SMALL_REAP = 128 * 1024      /* bytes of a reap that takes any block before it grows */
};

/* --- sweeping -------------------------------------------------------------------------------- */

/* Moves the bump pointer back to unit, where a dissolved block starts, and over the free blocks before it. */
static void bump_back(struct reap *reap, struct reap_chunk *chunk, size_t unit)
{
    ASSERT(chunk == reap->current && unit >= reap_chunk_floor(chunk) && unit <= reap_chunk_top(reap, chunk));
    size_t from = reap_unit(chunk, reap->bump);
    reap_chunk_note_high(chunk, from);
    reap_shrink_begin(chunk);
    if (unit < from) bitmap_clear(chunk->starts, unit);
    while (chunk->frees && unit > reap_chunk_floor(chunk)) {
        size_t start = bitmap_previous(chunk->starts, unit - 1, chunk->first);
        if (!bitmap_get(chunk->frees, start)) break;
        reap_freelists_dissolve(reap, chunk, start, unit);
        unit = start;
    }
    reap->bump = reap_address(chunk, unit);
    ASSERT(unit >= chunk->first && bitmap_next(chunk->starts, unit, chunk->end_unit) == chunk->end_unit);
    reap_shrink_end(chunk);
    reap_choose_mode(reap);
}

/* Joins a run of free blocks. unit is the start of any free block of the run but the first one. */
static void join_at(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t top)
{
    if (!bitmap_get(chunk->frees, unit)) return; /* its run is joined already */
    size_t start = bitmap_previous(chunk->starts, unit - 1, chunk->first);
    size_t end = reap_freelists_join(reap, chunk, unit, top);
    ASSERT(start >= chunk->first && reap_is_free(chunk, start) && end > unit);
    reap_freelists_unlink(reap, reap_address(chunk, start), unit - start);
    chunk->live_above -= (ptrdiff_t)(end - unit);
    reap_freelist_push(reap, chunk, start, end - start);
}

/* Joins all free neighbours of a chunk. It finds them a word at a time: an addition of the free starts, one
 * bit up, to the bits that are no starts carries each free start to the next start. Where that one is free
 * too, two free blocks touch. */
static NOINLINE void sweep(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && chunk->frees && !chunk->draining && reap_chunk_is_to_sweep(chunk));
    size_t top = reap_chunk_top(reap, chunk);
    uint64_t carry = 0;
    reap_chunk_forget_sweep(chunk);
    for (size_t i = 0; i * 64 < top; i++) {
        uint64_t starts = chunk->starts[i], frees = chunk->frees[i], sum;
        uint64_t over = __builtin_add_overflow(~starts, frees << 1 | carry, &sum);
        uint64_t touching = sum & frees;
        carry = over | frees >> 63;
        for (; touching; touching &= touching - 1)
            join_at(reap, chunk, i * 64 + (size_t)__builtin_ctzll(touching), top);
    }
    if (chunk == reap->current) bump_back(reap, chunk, top);
    reap_chunk_sweep_below(chunk, reap_freelists_next_sweep(chunk));
}

/* --- allocation ------------------------------------------------------------------------------ */

/* The first of a list's blocks that is big enough. */
static struct reap_block *first_fit(struct reap_block *block, size_t units, int tries)
{
    for (int i = 0; block && i < tries; i++, block = block->next)
        if (block->units >= units) return block;
    return NULL;
}

/* A free block and its units; block is NULL if there is none. */
struct fit {
    struct reap_block *block;
    size_t units;
};

static struct fit fit_of(struct reap_block *block, size_t list)
{
    ASSERT(list < REAP_EXACT_LISTS || reap_freelist(block->units) == list);
    return (struct fit){block, list < REAP_EXACT_LISTS ? list + 1 : block->units};
}

/* Finds about the smallest block that fits: any block of a list above that for units does. If not any block
 * will do, a small object gets a block of its own size, or a big one, which has room for many. */
static struct fit find(struct reap *reap, size_t units, bool any)
{
    size_t list = reap_freelist(units);
    struct reap_block **lists = reap_tables_of(reap)->freelists;
    uint64_t used = reap->freelists_used >> list << list;
    if (list < REAP_EXACT_LISTS && !(used >> list & 1) && !any) used = used >> RUNS << RUNS;
    if (list >= REAP_EXACT_LISTS && used >> list & 1) {
        int tries = list < REAP_FREELISTS - 1 ? TRIES : INT_MAX; /* no list is above the last one */
        struct reap_block *block = first_fit(lists[list], units, tries);
        if (block) return fit_of(block, list);
        used &= used - 1;
    }
    if (!used)
        return (struct fit){NULL, 0}; /* __builtin_ctzll(0) is undefined */
    list = (size_t)__builtin_ctzll(used);
    ASSERT(lists[list] != NULL && fit_of(lists[list], list).units >= units);
    return fit_of(lists[list], list);
}

/* Drains all chunks, and joins free blocks before the hole with it. */
static void drain_all(struct reap *reap)
{
    reap_drain_all(reap);
    if (reap->current) bump_back(reap, reap->current, reap_chunk_top(reap, reap->current));
}

/* Finds a block that fits after it has joined free neighbours. It sweeps the chunks of the sweep list
 * until a block fits. If most chunks are on that list it drains all chunks instead, and joins only in
 * the current one. */
static NOINLINE struct fit find_swept(struct reap *reap, size_t units)
{
    struct fit fit = {NULL, 0};
    if (!list_is_empty(&reap->to_sweep) && reap_drain_all_is_due(reap)) {
        drain_all(reap);
        fit = find(reap, units, false);
    }
    while (!fit.block && !list_is_empty(&reap->to_sweep)) {
        sweep(reap, LIST_ENTRY(reap->to_sweep.first, struct reap_chunk, to_sweep));
        fit = find(reap, units, false);
    }
    ASSERT(!fit.block || fit.units >= units);
    return fit;
}

/* The number of further blocks of this size to cut from a block with `rest` more. A program asks for most
 * sizes again, and then finds such a block at once. The number is small in a small reap, which could need the
 * memory for another size, and 0 where the reap would otherwise grow. */
static size_t more(const struct reap *reap, size_t units, size_t rest)
{
    size_t bytes = reap->reuse_any ? 0 : reap->held / 64;
    if (units > REAP_EXACT_LISTS || reap_instrumented || bytes < units * REAP_UNIT) return 0;
    size_t n = (bytes < BATCH ? bytes : BATCH) / (units * REAP_UNIT);
    return n < rest / units ? n : rest / units;
}

/* Cuts n free blocks off a block's end, which is at `end`. They come first on their list, in order of
 * address. All that is the same for each of them happens once. */
static void cut_free(struct reap *reap, struct reap_chunk *chunk, size_t end, size_t units, size_t n)
{
    ASSERT(n != 0 && units <= REAP_EXACT_LISTS && end <= chunk->end_unit);
    struct reap_block **list = &reap_tables_of(reap)->freelists[reap_freelist(units)], *head = *list;
    uint64_t *starts = chunk->starts, *frees = chunk->frees;
    for (size_t unit = end - units; n > 0; n--, unit -= units) {
        struct reap_block *block = reap_address(chunk, unit);
        uint64_t bit = (uint64_t)1 << unit % 64;
        ASSERT(unit >= chunk->first && bitmap_next(starts, unit, unit + units) == unit + units);
        starts[unit / 64] |= bit;
        frees[unit / 64] |= bit;
        block->next = head;
        if (head) head->prev = block;
        head = block;
    }
    *list = head;
    reap->freelists_used |= (uint64_t)1 << reap_freelist(units);
    reap_heap_mode(reap);
}

/* Makes an object of the end of a free block, together with free blocks of its size behind it. So the block's
 * rest stays where it is, and often on its list. */
static NOINLINE void *cut(struct reap *reap, struct fit fit, size_t units)
{
    struct reap_block *block = fit.block;
    struct reap_chunk *chunk = reap_chunk_find(reap, block);
    size_t unit = reap_unit(chunk, block), have = fit.units;
    ASSERT(chunk != NULL && have >= units && reap_is_free(chunk, unit) && bitmap_get(chunk->starts, unit));
    size_t n = more(reap, units, have - units), rest = have - units * (n + 1);
    ASSERT(units * (n + 1) + rest == have);
    if (rest > 0 && reap_freelist(rest) == reap_freelist(have)) {
        block->units = rest;
    } else {
        reap_freelists_unlink(reap, block, have);
        if (rest > 0)
            reap_freelist_push(reap, chunk, unit, rest);
        else
            bitmap_clear(chunk->frees, unit);
    }
    if (n > 0) cut_free(reap, chunk, unit + have, units, n);
    bitmap_set(chunk->starts, unit + rest);
    reap_count_cut(chunk, units);
    ASSERT(!reap_is_free(chunk, unit + rest) && reap_chunk_live(chunk) <= chunk->end_unit - chunk->first);
    return reap_address(chunk, unit + rest);
}

void *reap_free_take(struct reap *reap, size_t units)
{
    ASSERT(units != 0 && !(reap->flags & REAP_MARKED));
    struct fit fit = find(reap, units, false);
    if (!fit.block) fit = find_swept(reap, units);
    bool any = reap->reuse_any || (!fit.block && reap->draining > 0);
    if (any) fit = find(reap, units, true); /* not a bigger block than it must be */
    return fit.block ? cut(reap, fit, units) : NULL;
}

/* Returns true if it is time to join all free blocks: a quarter of the chunks is free, and some growths have
 * passed since a join that found nothing. */
static bool is_due(struct reap *reap)
{
    if (reap->patience > 0) {
        reap->patience--;
        return false;
    }
    return reap->freelists_used && reap_drain_part_is_free(reap, 4);
}

/* Drains all chunks, and takes them into use again one by one until a joined block fits. */
static NOINLINE void *take_joined(struct reap *reap, size_t units)
{
    void *object = NULL;
    unsigned drained = 0;
    drain_all(reap);
    for (struct reap_chunk *chunk = reap_chunk_begin(reap); chunk; chunk = reap_chunk_after(reap, chunk)) {
        if (!chunk->draining) continue;
        reap_drain_end(reap, chunk);
        object = reap_free_take(reap, units);
        if (object) return object;
        drained++;
    }
    ASSERT(reap->draining == 0);
    reap->patience = (uint16_t)(drained / 8 < UINT16_MAX ? drained / 8 : UINT16_MAX);
    return NULL;
}

/* Returns true if one chunk more is much of a reap as small as this one. */
static bool is_small(const struct reap *reap) { return reap->held <= SMALL_REAP; }

void *reap_free_take_last(struct reap *reap, size_t units)
{
    void *object = NULL;
    if (reap->flags & REAP_MARKED) return NULL;
    if (reap->freelists_used && !reap->reuse_any && (is_small(reap) || reap_drain_part_is_free(reap, 2))) {
        reap->reuse_any = true;
        object = reap_free_take(reap, units);
    }
    if (!object && reap->draining == 0 && is_due(reap)) object = take_joined(reap, units);
    while (!object && reap_drain_end_one(reap)) object = reap_free_take(reap, units);
    if (!object) reap->reuse_any = false;
    return object;
}

/* --- freeing --------------------------------------------------------------------------------- */

/* Returns true if there are no live objects beside the current chunk. */
static bool rest_is_free(const struct reap *reap)
{
    const struct reap_chunk *first = reap_first_chunk(reap);
    return reap->chunks == reap->current && !reap->current->next && reap_chunk_live(first) == 0;
}

/* An empty current chunk stays while the other chunks are at least half as big: otherwise each object that
 * comes and goes at a chunk's border would cost a chunk. */
static void settle(struct reap *reap, bool may_stay)
{
    struct reap_chunk *chunk = reap->current;
    if (!chunk || chunk == reap_first_chunk(reap) || chunk->pinned) return;
    if (reap->bump != reap_address(chunk, chunk->first)) return;
    ASSERT(reap_chunk_live(chunk) == chunk->end_unit - chunk->first);
    size_t others = reap->held - reap->spare_bytes - chunk->size;
    if (may_stay && chunk->size / 2 <= others && !rest_is_free(reap)) return;
    reap_chunk_forget_sweep(chunk);
    reap_chunk_release(reap, chunk);
}

void reap_free_settle(struct reap *reap) { settle(reap, true); }

void reap_free_trim(struct reap *reap)
{
    if (reap->freelists_used && !(reap->flags & REAP_MARKED)) drain_all(reap);
    settle(reap, false);
}

static void drain_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    if (reap_drain_most_are_due(reap)) {
        drain_all(reap);
        return;
    }
    reap_chunk_sweep_below(chunk, 0); /* the free by reap_free_leave_hole must not call reap_free_rest */
    if (chunk == reap->current) reap_free_leave_hole(reap);
    ASSERT(chunk != reap->current && !chunk->pinned);
    reap_drain_begin(reap, chunk);
}

void reap_free_rest(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && chunk->kind == REAP_REGULAR && chunk->frees);
    size_t step = reap_sweep_step(chunk);
    if (!reap_chunk_is_to_sweep(chunk) && !chunk->draining) list_push(&reap->to_sweep, &chunk->to_sweep);
    size_t live = reap_chunk_live(chunk);
    if (live > 0 && !chunk->draining && reap_drain_is_due(reap, chunk)) {
        drain_chunk(reap, chunk);
        live = reap_chunk_live(chunk);
    }
    reap_chunk_sweep_below(chunk, !chunk->draining && live > step ? (ptrdiff_t)(live - step) : 1);
    if (live > 0 || chunk == reap->current) return;
    if (chunk != reap_first_chunk(reap) && !chunk->pinned) {
        reap_freelists_join(reap, chunk, chunk->first, chunk->end_unit);
        reap_chunk_forget_sweep(chunk);
        reap_chunk_release(reap, chunk);
        reap_choose_mode(reap);
    }
    reap_free_settle(reap);
}

/* Makes the links in a free block's own memory accessible to the library. */
static void show_links(const struct reap_chunk *chunk, size_t unit, size_t end)
{
    size_t size = (end - unit) * REAP_UNIT;
    sanitizer_use(reap_address(chunk, unit),
                  size < sizeof(struct reap_block) ? size : sizeof(struct reap_block));
}

void reap_free_block(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end)
{
    ASSERT(chunk->owner == reap && chunk->kind == REAP_REGULAR);
    size_t top = reap_chunk_top(reap, chunk);
    ASSERT(unit >= chunk->first && unit < end && end <= top && !reap_is_free(chunk, unit));
    if (end == top && chunk == reap->current && unit >= reap_chunk_floor(chunk)) {
        bump_back(reap, chunk, unit);
        if (reap->bump == reap_address(chunk, chunk->first)) reap_free_settle(reap);
        return;
    }
    if (!chunk->frees) reap_chunk_make_frees(reap, chunk);
    if (UNLIKELY(reap_instrumented)) show_links(chunk, unit, end);
    bitmap_set(chunk->starts, unit);
    bitmap_set(chunk->frees, unit);
    if (!chunk->draining) reap_freelist_push(reap, chunk, unit, end - unit);
    reap_free_count(reap, chunk, end - unit);
}

bool reap_free_grow(struct reap *reap, struct reap_chunk *chunk, size_t end, size_t extra)
{
    ASSERT(extra != 0 && chunk->kind == REAP_REGULAR && end <= reap_chunk_top(reap, chunk));
    size_t top = reap_chunk_top(reap, chunk), after = end;
    bool is_older = chunk->pinned & REAP_PIN_MARK && end <= reap_chunk_mark(chunk);
    if (is_older) return false; /* it would grow across a mark */
    if (chunk->frees) {
        while (after < top && after - end < extra && bitmap_get(chunk->frees, after))
            after = reap_block_end(reap, chunk, after);
    }
    size_t room = after - end;
    bool at_hole = after == top && chunk == reap->current;
    if (at_hole) room += (size_t)(reap->bump_max - reap->bump) / REAP_UNIT;
    if (room < extra) return false;
    reap_freelists_join(reap, chunk, end, after);
    if (end + extra > after)
        reap->bump = reap_address(chunk, end + extra);
    else if (end + extra < after)
        reap_free_block(reap, chunk, end + extra, after);
    reap_choose_mode(reap);
    return true;
}

/* Returns true if the rest of the hole is too short for a free block. Without other free blocks the chunk
 * would need a second bitmap for it. */
static bool is_short_end(const struct reap_chunk *chunk, size_t unit)
{
    return !chunk->frees && unit > chunk->first && chunk->end_unit - unit < chunk->size / REAP_UNIT / 64;
}

void reap_free_leave_hole(struct reap *reap)
{
    struct reap_chunk *chunk = reap->current;
    if (!chunk) return;
    size_t unit = reap_unit(chunk, reap->bump), units = chunk->end_unit - unit;
    ASSERT(unit >= chunk->first && unit <= chunk->end_unit);
    bool is_block = units != 0 && !is_short_end(chunk, unit);
    reap_shrink_begin(chunk);
    if (is_block) {
        bitmap_set(chunk->starts, unit);
    } else {
        chunk->end_unit = unit;
        chunk->live_above -= (ptrdiff_t)units;
    }
    reap->current = NULL;
    reap->bump = reap->end = reap->bump_max = NULL;
    reap_shrink_end(chunk);
    ASSERT(!reap->current && !reap->bump && !reap->bump_max);
    if (is_block) reap_free_block(reap, chunk, unit, chunk->end_unit); /* which may give the chunk back */
}

/* --- marks ----------------------------------------------------------------------------------- */

size_t reap_free_unlist(struct reap *reap, struct reap_chunk *chunk, size_t from)
{
    ASSERT(from >= chunk->first && chunk->kind == REAP_REGULAR);
    size_t top = reap_chunk_top(reap, chunk), unit = from;
    while (chunk->frees && (unit = bitmap_next(chunk->frees, unit, top)) < top) {
        size_t end = reap_block_end(reap, chunk, unit);
        if (!chunk->draining) reap_freelists_unlink(reap, reap_address(chunk, unit), end - unit);
        chunk->live_above += (ptrdiff_t)(end - unit);
        ASSERT(reap_chunk_live(chunk) <= chunk->end_unit - chunk->first);
        unit = end;
    }
    return top;
}

void reap_free_wipe(struct reap_chunk *chunk, size_t from, size_t top)
{
    ASSERT(from >= chunk->first && top <= chunk->end_unit);
    bitmap_clear_range(chunk->starts, from, top);
    if (chunk->frees) bitmap_clear_range(chunk->frees, from, top);
}

void reap_free_unwind(struct reap *reap, struct reap_chunk *chunk, size_t from)
{
    reap_free_wipe(chunk, from, reap_free_unlist(reap, chunk, from));
}

void reap_free_discard(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk != reap_first_chunk(reap) && chunk != reap->current);
    if (chunk->kind == REAP_REGULAR) {
        reap_free_unwind(reap, chunk, chunk->first);
        reap_chunk_forget_sweep(chunk);
    }
    reap_chunk_release(reap, chunk);
}

void reap_free_unmark(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap);
    bool is_records = !chunk->frees; /* all of it, if nothing lives */
    if (chunk == reap->current)
        bump_back(reap, chunk, reap_chunk_top(reap, chunk));
    else if (chunk->kind == REAP_REGULAR && reap_chunk_live(chunk) == 0 && !is_records)
        reap_free_rest(reap, chunk);
}
