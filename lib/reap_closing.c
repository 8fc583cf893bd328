/* reap_closing.c: which chunks a reap can do without. */
#include "reap_closing.h"

#include "reap_bins.h"

static size_t hole_in(const struct reap *reap, const struct reap_chunk *chunk)
{
    return chunk == reap->current ? chunk->limit - reap_unit(chunk, reap->bump) : 0;
}

/* A chunk's free units, the hole among them. */
static size_t free_units(const struct reap *reap, const struct reap_chunk *chunk)
{
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

/* May the reap do without the free blocks of a chunk, in which less than half lives? The one with the hole is
 * most likely to be filled, and only thought of when most of it has been used. */
bool reap_closing_is_due(const struct reap *reap, const struct reap_chunk *chunk)
{
    size_t all = chunk->limit - chunk->first;
    if (chunk->pinned || chunk == reap_first_chunk(reap) || reap->flags & REAP_MARKED) return false;
    if (free_units(reap, chunk) < all / 2 || hole_in(reap, chunk) > all / 2) return false;
    return others_have_room(reap, chunk);
}

void reap_closing_close(struct reap *reap, struct reap_chunk *chunk)
{
    size_t limit = chunk->limit;
    for (size_t unit = chunk->first; (unit = bitmap_next(chunk->frees, unit, limit)) < limit; unit++)
        reap_bins_unlink(reap, reap_address(chunk, unit), reap_block_end(reap, chunk, unit) - unit);
    reap_bins_remove_dirty(reap, chunk);
    reap_chunk_forget(reap, chunk);
    chunk->closed = true;
    reap->closed++;
}

/* The free blocks of a closed chunk, joined, are for use again. */
static void reopen(struct reap *reap, struct reap_chunk *chunk)
{
    size_t limit = chunk->limit;
    for (size_t unit = chunk->first; (unit = bitmap_next(chunk->frees, unit, limit)) < limit;) {
        size_t end = reap_block_end(reap, chunk, unit), run = reap_bins_join(reap, chunk, end, limit);
        chunk->live_units -= run - end;
        reap_bin_push(reap, chunk, unit, run - unit);
        unit = run;
    }
    chunk->closed = false;
    reap->closed--;
    chunk->notice = reap_bins_next_notice(chunk);
}

bool reap_closing_reopen(struct reap *reap)
{
    struct reap_chunk *best = NULL;
    if (LIKELY(reap->closed == 0) || reap->flags & REAP_MARKED) return false;
    for (struct reap_chunk *chunk = reap->chunks; chunk; chunk = chunk->next)
        if (chunk->closed && (!best || free_units(reap, chunk) > free_units(reap, best))) best = chunk;
    reopen(reap, best);
    return true;
}
