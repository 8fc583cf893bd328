/* SPDX-License-Identifier: Apache-2.0 */
/* reap_mark.c: marks, moments in a reap's life to which it can go back. */
#include "reap/reap_mark.h"

#include "base/report.h"
#include "reap/cleanup.h"
#include "reap/instrument.h"
#include "reap/quota.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"
#include "reap/validate.h"
#include "region/reap_free.h"

/* The number of marks that this thread has made. Each thread numbers its marks from another start, so no
 * thread waits for a number. */
static __thread uint64_t made;

static uint64_t next_number(void) { return ((uint64_t)(uintptr_t)&made << 16) + ++made; }

/* --- is it one? ------------------------------------------------------------------------------ */

/* Returns true if the hole may begin at the mark's place. */
static bool is_place(const struct reap *reap, const reap_mark *mark)
{
    const struct reap_chunk *chunk = mark->chunk;
    if (!chunk) return true;
    if (chunk_of(chunk, NULL) != chunk || !reap_chunk_is_live(chunk) || chunk->owner != reap) return false;
    if (!(chunk->pinned & REAP_PIN_MARK) || reap_chunk_mark(chunk) < mark->unit) return false;
    if (chunk->depth >= mark->depth) return false;
    return mark->unit == reap_chunk_top(reap, chunk) || bitmap_get(chunk->starts, mark->unit);
}

void reap_mark_check(const struct reap *reap, const reap_mark *mark, const char *call)
{
    REAP_NOT_NULL(mark, call);
    unsigned depth = reap_depth(reap);
    bool open = mark->reap == reap && mark->depth > 0 && mark->depth <= depth;
    if (open && mark->depth == depth && mark->number != reap->mark) open = false;
    if (!open || !is_place(reap, mark)) report_misuse(call, mark, "not an open mark of this reap");
}

/* --- depth ----------------------------------------------------------------------------------- */

/* Sets the number of open marks. Other threads may create children meanwhile. Such a child is either on the
 * list already, where its depth is lowered, or it comes onto the list later and with the new depth. */
static void set_depth(struct reap *reap, unsigned depth)
{
    ASSERT(depth <= UINT16_MAX);
    reap_tree_lock(&reap->below);
    for (struct reap *child = reap->children; child && child->born > depth; child = child->next)
        child->born = (uint16_t)depth;
    reap->depth = (uint16_t)depth;
    reap->flags = (uint8_t)(depth > 0 ? reap->flags | REAP_MARKED : reap->flags & ~REAP_MARKED);
    reap_tree_unlock(&reap->below);
}

void reap_mark_forget_all(struct reap *reap) { set_depth(reap, 0); }

/* --- open ------------------------------------------------------------------------------------ */

void reap_mark_open(struct reap *reap, reap_mark *mark)
{
    ASSERT_SOUND(reap);
    struct reap_chunk *chunk = reap->current;
    unsigned depth = reap_depth(reap);
    if (depth == UINT16_MAX) report_misuse("reapMark", reap_handle(reap), "65535 marks are open already");
    ASSERT(!chunk || chunk->owner == reap);
    *mark = (reap_mark){.reap = reap, .chunk = chunk, .number = next_number()};
    mark->depth = (uint16_t)(depth + 1);
    mark->outer = depth ? reap->mark : 0;
    if (chunk) {
        mark->unit = reap_unit(chunk, reap->bump);
        ASSERT(mark->unit >= chunk->first && mark->unit <= chunk->end_unit);
        bool pinned = chunk->pinned & REAP_PIN_MARK;
        size_t before = pinned ? reap_chunk_mark(chunk) : 0;
        mark->pinned = (uint16_t)(before >> 32 << 1 | pinned);
        mark->floor = (uint32_t)before;
        chunk->pinned |= REAP_PIN_MARK;
        reap_chunk_set_mark(chunk, mark->unit);
    }
    reap_open(reap);
    reap->mark = mark->number;
    set_depth(reap, mark->depth);
    reap_chunk_forget_all(reap);
    reap_region_mode(reap);
    reap_close(reap);
}

/* --- rewind ---------------------------------------------------------------------------------- */

static void watch_freed_at(struct reap *reap, const struct reap_chunk *chunk, size_t unit)
{
    size_t bytes = (reap_block_end(reap, chunk, unit) - unit) * REAP_UNIT;
    reap_instrument_free(reap, reap_address(chunk, unit), bytes);
}

/* Reports that the objects of a chunk from a unit on are freed. */
static void watch_freed(struct reap *reap, const struct reap_chunk *chunk, size_t from)
{
    size_t top = reap_chunk_top(reap, chunk);
    if (chunk->kind == REAP_WHOLE) {
        watch_freed_at(reap, chunk, chunk->first);
        return;
    }
    for (size_t unit = from; (unit = bitmap_next(chunk->starts, unit, top)) < top; unit++)
        if (!reap_is_free(chunk, unit)) watch_freed_at(reap, chunk, unit);
}

/* Empties the current chunk and gives up its hole: blocks first, because the hole bounds the last block. */
static void leave_current(struct reap *reap, struct reap_chunk *chunk)
{
    ASSERT(chunk == reap->current && chunk != reap_first_chunk(reap));
    if (UNLIKELY(reap_instrumented)) watch_freed(reap, chunk, chunk->first);
    reap_free_unwind(reap, chunk, chunk->first);
    reap_shrink_begin(chunk);
    reap->current = NULL;
    reap->bump = reap->end = reap->bump_max = NULL;
    reap_shrink_end(chunk);
}

/* Makes one free block of a chunk that must stay because it has records. */
static void empty_chunk(struct reap *reap, struct reap_chunk *chunk, unsigned depth)
{
    ASSERT(chunk->pinned & REAP_PIN_RECORDS && chunk->owner == reap);
    chunk->pinned = REAP_PIN_RECORDS;
    chunk->depth = (uint16_t)depth;
    reap_free_unwind(reap, chunk, chunk->first);
    if (chunk->first < chunk->end_unit) reap_free_block(reap, chunk, chunk->first, chunk->end_unit);
}

static void rewind_chunks(struct reap *reap, unsigned depth)
{
    if (reap->current && reap->current->depth >= depth) leave_current(reap, reap->current);
    for (struct reap_chunk *next, *chunk = reap->chunks; chunk && chunk->depth >= depth; chunk = next) {
        next = chunk->next;
        ASSERT(chunk->owner == reap && chunk != reap->current);
        if (UNLIKELY(reap_instrumented)) watch_freed(reap, chunk, chunk->first);
        if (chunk->pinned & REAP_PIN_RECORDS)
            empty_chunk(reap, chunk, depth);
        else
            reap_free_discard(reap, chunk);
    }
}

/* Moves the bump pointer back to the mark, from this chunk or another one. */
static void rewind_to(struct reap *reap, struct reap_chunk *chunk, size_t unit)
{
    ASSERT(chunk->owner == reap && unit >= chunk->first && unit <= reap_chunk_top(reap, chunk));
    if (UNLIKELY(reap_instrumented)) watch_freed(reap, chunk, unit);
    size_t top = reap_free_unlist(reap, chunk, unit);
    reap_chunk_note_high(chunk, top);
    reap_shrink_begin(chunk);
    reap_free_wipe(chunk, unit, top);
    reap_chunk_bump_in(reap, chunk, unit);
    reap_shrink_end(chunk);
    reap_chunk_set_mark(chunk, unit);
    if (UNLIKELY(reap_instrumented)) sanitizer_hide(reap->bump, (size_t)(reap->bump_max - reap->bump));
}

void reap_mark_rewind(struct reap *reap, const reap_mark *mark)
{
    ASSERT_SOUND(reap);
    bool limited = reap->flags & REAP_LIMITED;
    if (limited) reap_quota_open(reap);
    size_t before = limited ? reap_chunk_live_bytes(reap) : 0;
    rewind_chunks(reap, mark->depth);
    if (mark->chunk) rewind_to(reap, mark->chunk, mark->unit);
    reap->mark = mark->number;
    set_depth(reap, mark->depth);
    reap_region_mode(reap);
    if (!limited) return;
    ASSERT(before >= reap_chunk_live_bytes(reap));
    reap_quota_give(reap, before - reap_chunk_live_bytes(reap));
    reap_quota_close(reap);
}

/* --- close ----------------------------------------------------------------------------------- */

static void lower_functions(struct reap *reap, unsigned depth)
{
    for (struct reap_cleanup *cleanup = reap->cleanups; cleanup && cleanup->depth > depth;
         cleanup = cleanup->next)
        cleanup->depth = depth;
}

/* Lowers the depth of younger chunks. Later marks are closed too, and their chunks are among these. */
static void lower_chunks(struct reap *reap, unsigned depth)
{
    for (struct reap_chunk *next, *chunk = reap->chunks; chunk && chunk->depth > depth; chunk = next) {
        next = chunk->next;
        ASSERT(chunk->owner == reap);
        chunk->depth = (uint16_t)depth;
        if (!(chunk->pinned & REAP_PIN_MARK)) continue;
        chunk->pinned &= REAP_PIN_RECORDS;
        reap_free_unmark(reap, chunk);
    }
}

static void leave_chunk(struct reap *reap, const reap_mark *mark)
{
    struct reap_chunk *chunk = mark->chunk;
    ASSERT(chunk->pinned & REAP_PIN_MARK);
    reap_chunk_set_mark(chunk, (size_t)(mark->pinned >> 1) << 32 | mark->floor);
    if (!mark->pinned) chunk->pinned &= REAP_PIN_RECORDS;
    reap_free_unmark(reap, chunk);
}

void reap_mark_close(struct reap *reap, const reap_mark *mark)
{
    ASSERT_SOUND(reap);
    ASSERT(mark->depth >= 1 && mark->depth <= reap_depth(reap));
    unsigned outside = mark->depth - 1u;
    reap_open(reap);
    lower_functions(reap, outside);
    lower_chunks(reap, outside);
    if (mark->chunk) leave_chunk(reap, mark);
    reap->mark = mark->outer;
    set_depth(reap, outside);
    if (outside == 0)
        reap_choose_mode(reap);
    else
        reap_region_mode(reap);
    reap_close(reap);
}
