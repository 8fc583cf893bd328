/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c: draining chunks, which a reap can do without. */
#include "region/drain.h"

#include <string.h>

#include "region/freelist.h"

static bool is_in_use(const struct reap_chunk *chunk) { return chunk->frees && !chunk->draining; }

static size_t hole_in(const struct reap *reap, const struct reap_chunk *chunk)
{
    return chunk == reap->current ? chunk->end_unit - reap_unit(chunk, reap->bump) : 0;
}

/* A chunk's free units, the hole among them. */
static size_t free_units(const struct reap *reap, const struct reap_chunk *chunk)
{
    ASSERT(chunk->kind == REAP_REGULAR && reap_chunk_live(chunk) <= chunk->end_unit - chunk->first);
    return chunk->end_unit - chunk->first - reap_chunk_live(chunk) + hole_in(reap, chunk);
}

/* Returns true if the other chunks in use have room for the live objects of this chunk and of draining ones,
 * and for an eighth of their own besides. */
static bool others_have_room(const struct reap *reap, const struct reap_chunk *chunk)
{
    size_t have = 0, need = reap_chunk_live(chunk) - hole_in(reap, chunk), live = 0;
    for (const struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c)) {
        if (c == chunk || c->kind != REAP_REGULAR) continue;
        if (c->draining) {
            need += reap_chunk_live(c);
        } else {
            have += free_units(reap, c);
            live += c->end_unit - c->first - free_units(reap, c);
        }
    }
    return have >= need + live / 8;
}

/* The chunk with the hole is likely to be filled soon: so it is due only when less than half of it is
 * hole. */
bool reap_drain_is_due(const struct reap *reap, const struct reap_chunk *chunk)
{
    size_t all = chunk->end_unit - chunk->first;
    if (chunk->pinned || chunk == reap_first_chunk(reap) || reap->flags & REAP_MARKED) return false;
    if (free_units(reap, chunk) < all / 2 || hole_in(reap, chunk) > all / 2) return false;
    return others_have_room(reap, chunk);
}

/* Drains a chunk after its blocks have left the free lists. */
static void drain_unlisted(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && !chunk->draining && chunk->frees);
    reap_chunk_forget_sweep(chunk);
    chunk->draining = true;
    reap_chunk_sweep_below(chunk, 1);
    reap->draining++;
}

void reap_drain_begin(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk != reap->current && !chunk->pinned);
    size_t top = chunk->end_unit;
    for (size_t unit = chunk->first; (unit = bitmap_next(chunk->frees, unit, top)) < top; unit++)
        reap_freelists_unlink(reap, reap_address(chunk, unit), reap_block_end(reap, chunk, unit) - unit);
    drain_unlisted(reap, chunk);
}

/* The unit where the first live block behind a free one starts; top if there is none. */
static size_t next_live(const struct reap_chunk *chunk, size_t unit, size_t top)
{
    ASSERT(reap_is_free(chunk, unit) && unit < top);
    size_t i = unit / 64;
    uint64_t live = chunk->starts[i] & ~chunk->frees[i] & ~(uint64_t)0 << (unit % 64);
    while (!live) {
        if (++i * 64 >= top) return top;
        live = chunk->starts[i] & ~chunk->frees[i];
    }
    return i * 64 + (size_t)__builtin_ctzll(live);
}

void reap_drain_end(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->draining && reap->draining != 0 && !reap_chunk_is_to_sweep(chunk));
    size_t top = reap_chunk_top(reap, chunk), unit = chunk->first;
    while ((unit = bitmap_next(chunk->frees, unit, top)) < top) {
        size_t end = next_live(chunk, unit, top);
        bitmap_clear_range(chunk->starts, unit + 1, end);
        bitmap_clear_range(chunk->frees, unit + 1, end);
        reap_freelist_push(reap, chunk, unit, end - unit);
        unit = end;
    }
    chunk->draining = false;
    reap->draining--;
    reap_chunk_sweep_below(chunk, reap_freelists_next_sweep(chunk));
}

bool reap_drain_end_one(struct reap *reap)
{
    struct reap_chunk *best = NULL;
    if (LIKELY(reap->draining == 0) || reap->flags & REAP_MARKED) return false;
    for (struct reap_chunk *chunk = reap_chunk_begin(reap); chunk; chunk = reap_chunk_after(reap, chunk))
        if (chunk->draining && (!best || free_units(reap, chunk) > free_units(reap, best))) best = chunk;
    ASSERT(best != NULL);
    reap_drain_end(reap, best);
    reap->reuse_any = false;
    return true;
}

bool reap_drain_part_is_free(const struct reap *reap, unsigned part)
{
    size_t all = 0, free = 0;
    for (struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c)) {
        if (!is_in_use(c)) continue;
        all += c->end_unit - c->first;
        free += free_units(reap, c);
        ASSERT(free <= all);
    }
    return free >= all / part;
}

static bool half_is_free(const struct reap *reap, const struct reap_chunk *chunk)
{
    return free_units(reap, chunk) >= (chunk->end_unit - chunk->first) / 2;
}

/* To drain a small chunk of which most lives costs more than to sweep it: all its free blocks go back to
 * their lists later, and the sweep touches only those that it joins. */
static bool is_dirty(const struct reap *reap, const struct reap_chunk *chunk)
{
    if (chunk->size <= REAP_SMALL_SWEEP && !half_is_free(reap, chunk)) return false;
    return reap_chunk_is_to_sweep(chunk);
}

/* Returns true if at least half of the memory of chunks in use is in those for which `is` holds. */
static bool most_are(const struct reap *reap, bool (*is)(const struct reap *, const struct reap_chunk *))
{
    size_t yes = 0, no = 0;
    for (struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c))
        if (is_in_use(c)) *(is(reap, c) ? &yes : &no) += c->size;
    return yes >= no;
}

bool reap_drain_most_are_due(const struct reap *reap) { return most_are(reap, half_is_free); }

bool reap_drain_all_is_due(const struct reap *reap) { return most_are(reap, is_dirty); }

void reap_drain_all(struct reap *reap)
{
    memset(reap_tables_of(reap)->freelists, 0, sizeof reap->own.freelists);
    reap->freelists_used = 0;
    reap->reuse_any = false;
    for (struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c))
        if (is_in_use(c)) drain_unlisted(reap, c);
    if (reap->current && reap->current->draining) reap_drain_end(reap, reap->current);
    reap_choose_mode(reap);
}
