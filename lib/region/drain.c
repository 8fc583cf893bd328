/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c: which chunks a reap can do without. */
#include "region/drain.h"

#include <string.h>

#include "region/freelist.h"

static bool is_open(const struct reap_chunk *chunk) { return chunk->frees && !chunk->closed; }

static size_t hole_in(const struct reap *reap, const struct reap_chunk *chunk)
{
    return chunk == reap->current ? chunk->limit - reap_unit(chunk, reap->bump) : 0;
}

/* A chunk's free units, the hole among them. */
static size_t free_units(const struct reap *reap, const struct reap_chunk *chunk)
{
    ASSERT(chunk->kind == REAP_REGULAR && chunk->live_units <= chunk->limit - chunk->first);
    return chunk->limit - chunk->first - chunk->live_units + hole_in(reap, chunk);
}

/* Have the other open chunks room for what lives in this one and in the closed ones, and for an eighth of
 * what lives in them beside? */
static bool others_have_room(const struct reap *reap, const struct reap_chunk *chunk)
{
    size_t have = 0, need = chunk->live_units - hole_in(reap, chunk), live = 0;
    for (const struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c)) {
        if (c == chunk || c->kind != REAP_REGULAR) continue;
        if (c->closed) {
            need += c->live_units;
        } else {
            have += free_units(reap, c);
            live += c->limit - c->first - free_units(reap, c);
        }
    }
    return have >= need + live / 8;
}

/* The chunk with the hole is most likely to be filled, and only thought of when most of it has been used. */
bool reap_closing_is_due(const struct reap *reap, const struct reap_chunk *chunk)
{
    size_t all = chunk->limit - chunk->first;
    if (chunk->pinned || chunk == reap_first_chunk(reap) || reap->flags & REAP_MARKED) return false;
    if (free_units(reap, chunk) < all / 2 || hole_in(reap, chunk) > all / 2) return false;
    return others_have_room(reap, chunk);
}

/* Closes a chunk whose blocks are in no bins any more. */
static void close_unlisted(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->owner == reap && !chunk->closed && chunk->frees);
    reap_forget_dirty(chunk);
    chunk->closed = true;
    chunk->notice = 1;
    reap->closed++;
}

void reap_closing_close(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk != reap->current && !chunk->pinned);
    size_t limit = chunk->limit;
    for (size_t unit = chunk->first; (unit = bitmap_next(chunk->frees, unit, limit)) < limit; unit++)
        reap_bins_unlink(reap, reap_address(chunk, unit), reap_block_end(reap, chunk, unit) - unit);
    close_unlisted(reap, chunk);
}

/* Where the first live block behind a free one starts. */
static size_t next_live(const struct reap_chunk *chunk, size_t unit, size_t limit)
{
    ASSERT(reap_is_free(chunk, unit) && unit < limit);
    size_t i = unit / 64;
    uint64_t live = chunk->starts[i] & ~chunk->frees[i] & ~(uint64_t)0 << (unit % 64);
    while (!live) {
        if (++i * 64 >= limit) return limit;
        live = chunk->starts[i] & ~chunk->frees[i];
    }
    return i * 64 + (size_t)__builtin_ctzll(live);
}

/* The free blocks of a closed chunk, joined, are for use again. */
void reap_closing_open(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk->closed && reap->closed != 0 && !reap_is_dirty(chunk));
    size_t limit = reap_chunk_top(reap, chunk), unit = chunk->first;
    while ((unit = bitmap_next(chunk->frees, unit, limit)) < limit) {
        size_t end = next_live(chunk, unit, limit);
        bitmap_clear_range(chunk->starts, unit + 1, end);
        bitmap_clear_range(chunk->frees, unit + 1, end);
        reap_bin_push(reap, chunk, unit, end - unit);
        unit = end;
    }
    chunk->closed = false;
    reap->closed--;
    chunk->notice = reap_bins_next_notice(chunk);
}

bool reap_closing_reopen(struct reap *reap)
{
    struct reap_chunk *best = NULL;
    if (LIKELY(reap->closed == 0) || reap->flags & REAP_MARKED) return false;
    for (struct reap_chunk *chunk = reap_chunk_begin(reap); chunk; chunk = reap_chunk_after(reap, chunk))
        if (chunk->closed && (!best || free_units(reap, chunk) > free_units(reap, best))) best = chunk;
    ASSERT(best != NULL);
    reap_closing_open(reap, best);
    reap->tight = false;
    return true;
}

bool reap_closing_part_is_free(const struct reap *reap, unsigned part)
{
    size_t all = 0, free = 0;
    for (struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c)) {
        if (!is_open(c)) continue;
        all += c->limit - c->first;
        free += free_units(reap, c);
        ASSERT(free <= all);
    }
    return free >= all / part;
}

static bool half_is_free(const struct reap *reap, const struct reap_chunk *chunk)
{
    return free_units(reap, chunk) >= (chunk->limit - chunk->first) / 2;
}

static bool is_dirty(const struct reap *reap, const struct reap_chunk *chunk)
{
    (void)reap;
    return reap_is_dirty(chunk);
}

/* Is half of the memory of open chunks in those that are so? */
static bool most_are(const struct reap *reap, bool (*is)(const struct reap *, const struct reap_chunk *))
{
    size_t yes = 0, no = 0;
    for (struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c))
        if (is_open(c)) *(is(reap, c) ? &yes : &no) += c->size;
    return yes >= no;
}

bool reap_closing_most_are_due(const struct reap *reap) { return most_are(reap, half_is_free); }

bool reap_closing_all_is_due(const struct reap *reap) { return most_are(reap, is_dirty); }

void reap_closing_close_all(struct reap *reap)
{
    memset(reap_tables(reap)->bins, 0, sizeof reap->own.bins);
    reap->bins_used = 0;
    reap->tight = false;
    for (struct reap_chunk *c = reap_chunk_begin(reap); c; c = reap_chunk_after(reap, c))
        if (is_open(c)) close_unlisted(reap, c);
    if (reap->current && reap->current->closed) reap_closing_open(reap, reap->current);
    reap_choose_mode(reap);
}
