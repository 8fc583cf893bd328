/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c: a reap without a first chunk of its own, and the way of its chunks into another reap. */
#include "region/merge.h"

#include <string.h>

#include "region/drain.h"
#include "region/reap_free.h"

void reap_bare_begin(struct reap_bare *bare, struct reap *whole, void *face)
{
    memset(bare, 0, sizeof *bare);
    struct reap *reap = &bare->reap;
    bare->first = (struct reap_chunk){.next = face, .prev = (void *)whole, .owner = reap};
    bare->first.kind = REAP_REGULAR;
    bare->first.shared = true;
    bare->first.starts = bare->none;
    bare->first.tag = reap_chunk_tag(&bare->first);
    reap->self = reap;
    reap->tables = &reap_no_tables;
    reap->tag = reap_shared_tag(reap);
    reap->flags = whole->flags & REAP_SOURCED;
    if (reap->flags & REAP_SOURCED) reap->source = whole->source;
    ASSERT(reap_first_chunk(reap) == &bare->first && reap_whole(reap) == whole);
}

bool reap_bare_begin_chunk(struct reap *reap)
{
    ASSERT(reap_bare_needs_chunk(reap));
    struct reap_chunk *chunk = reap_chunk_new(reap, 1);
    if (!chunk) return false;
    chunk->pinned = REAP_PIN_RECORDS; /* it has none, but stays as if it had */
    reap_first_chunk(reap)->floor = 1;
    reap_free_leave_hole(reap);
    reap_chunk_bump_in(reap, chunk, chunk->first);
    reap_choose_mode(reap);
    return true;
}

/* Moves a chunk, or gives it back if nothing lives in it. A reap with a draining chunk has free lists, to
 * which its blocks will come. */
static void pass_on(struct reap *from, struct reap *to, struct reap_chunk *chunk)
{
    chunk->pinned = 0;
    if (reap_chunk_live(chunk) == 0) {
        reap_chunk_release(from, chunk);
        return;
    }
    if (chunk->draining) reap_tables_begin(to);
    reap_chunk_move(from, to, chunk);
}

/* The bare reap need not have held the most while the whole one held what it holds now: so the sum is an
 * estimate. The sum of both peaks would grow with each gathering. */
void reap_bare_merge(struct reap *bare, struct reap *whole)
{
    ASSERT(reap_whole(bare) == whole && whole != bare && !(whole->flags & REAP_MARKED));
    ASSERT(!bare->remote && !bare->remote_chunks && bare->spare_bytes == 0 && !bare->cleanups);
    size_t most = whole->held + bare->peak;
    reap_free_leave_hole(bare);
    reap_drain_all(bare);
    reap_chunk_forget_all(bare);
    reap_tables_end(bare);
    while (bare->chunks) pass_on(bare, whole, bare->chunks);
    if (whole->peak < most) whole->peak = most;
    reap_first_chunk(bare)->floor = 0;
    bare->peak = 0;
    bare->patience = 0;
    ASSERT(bare->held == 0 && bare->draining == 0 && list_is_empty(&bare->to_sweep) && !bare->freelists_used);
}
