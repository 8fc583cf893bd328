/* SPDX-License-Identifier: Apache-2.0 */
/* reap_mark.c: marks, moments in a reap's life to which it can go back. */
#include "reap/reap_mark.h"

#include "base/report.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"
#include "reap/validate.h"
#include "region/reap_free.h"

/* The number of marks that this thread has made. Each thread numbers its marks from another start, so no
 * thread waits for a number. */
static __thread uint64_t made;

static uint64_t next_number(void) { return ((uint64_t)(uintptr_t)&made << 16) + ++made; }

/* --- checks ---------------------------------------------------------------------------------- */

/* The hole had so many units behind the mark's place, or it reached to the end of its chunk. Records may have
 * taken a part since. */
enum { TO_THE_END = UINT32_MAX };

/* Where the hole at a mark ended. */
static size_t end_of(const struct reap_chunk *chunk, const reap_mark *mark)
{
    size_t end = reap_unit(mark->place) + mark->room;
    return mark->room == TO_THE_END || end > chunk->end_unit ? chunk->end_unit : end;
}

/* Returns true if the hole may lie at the mark's place. */
static bool is_place(const struct reap *reap, const reap_mark *mark)
{
    if (!mark->place) return true;
    const struct reap_chunk *chunk = chunk_of(mark->place, NULL);
    size_t unit = reap_unit(mark->place);
    if (!chunk || !reap_chunk_is_live(chunk) || chunk->owner != reap || chunk->kind != REAP_REGULAR)
        return false;
    if (chunk->depth >= mark->depth || (uintptr_t)mark->place % REAP_UNIT) return false;
    size_t end = end_of(chunk, mark);
    if (unit < chunk->first || end < unit) return false;
    return bitmap_get(chunk->starts, unit) && bitmap_get(chunk->starts, end);
}

void reap_mark_check(const struct reap *reap, const reap_mark *mark, const char *call)
{
    REAP_NOT_NULL(mark, call);
    unsigned depth = reap_depth(reap);
    bool is_open = mark->reap == reap && mark->depth > 0 && mark->depth <= depth;
    is_open = is_open && (mark->depth < depth || mark->number == reap->mark);
    if (!is_open || !is_place(reap, mark)) report_misuse(call, mark, "not an open mark of this reap");
}

/* --- depth ----------------------------------------------------------------------------------- */

/* Adds an open mark. A child that another thread creates meanwhile is older than the mark, or younger:
 * whoever sees the flag sees the depth. */
static ALWAYS_INLINE void raise_depth(struct reap *reap, unsigned depth)
{
    __atomic_store_n(&reap->depth, (uint16_t)depth, __ATOMIC_RELAXED);
    __atomic_store_n(&reap->flags, reap->flags | REAP_MARKED, __ATOMIC_RELEASE);
}

static ALWAYS_INLINE void lower_depth(struct reap *reap, unsigned depth)
{
    ASSERT(depth <= reap_depth(reap));
    __atomic_store_n(&reap->depth, (uint16_t)depth, __ATOMIC_RELAXED);
    if (depth == 0) reap->flags &= (uint8_t)~REAP_MARKED;
}

static NOINLINE void lower_depth_locked(struct reap *reap, unsigned depth)
{
    reap_tree_lock(&reap->below);
    for (struct reap *child = reap->below.first; child && child->born > depth; child = child->next)
        child->born = (uint16_t)depth;
    lower_depth(reap, depth);
    reap_tree_unlock(&reap->below);
}

/* Lowers the number of open marks. A child that another thread creates meanwhile is either on the list
 * already, where its depth is lowered, or it comes onto the list later and with the new depth. */
static ALWAYS_INLINE void set_depth(struct reap *reap, unsigned depth)
{
    if (LIKELY(__libc_single_threaded && !reap_tree_has_children(reap)))
        lower_depth(reap, depth);
    else
        lower_depth_locked(reap, depth);
}

void reap_mark_forget_all(struct reap *reap)
{
    reap->mark_at = NULL;
    set_depth(reap, 0);
}

/* --- the usual case -------------------------------------------------------------------------- */

/* An ordinary reap in region mode without limits. NULL: the handle is of another one, or wrong. */
static ALWAYS_INLINE struct reap *usual(void **handle)
{
    struct reap *reap = LIKELY(UNKNOWN(handle) != NULL) ? *handle : NULL;
    if (UNLIKELY(!handle_is_mapped(reap) || reap->heap || reap->flags & ~REAP_MARKED)) return NULL;
    ASSERT_SOUND(reap);
    return reap;
}

/* Returns true if nothing is pending, and the hole has units and ends with its chunk. */
static ALWAYS_INLINE bool only_bumps(const struct reap *reap)
{
    const struct reap_chunk *chunk = reap->current;
    uintptr_t more = atomic_load_explicit(&reap->remote, memory_order_relaxed);
    more |= (uintptr_t)atomic_load_explicit(&reap->remote_chunks, memory_order_relaxed);
    return more == 0 && reap->bump != reap->bump_max && chunk->dead == 0 &&
           reap_address(chunk->end_unit) == reap->bump_max;
}

/* Returns true if it is the last mark of a usual reap. */
static ALWAYS_INLINE bool is_last(const struct reap *reap, const reap_mark *mark)
{
    return UNKNOWN(mark) && reap->flags & REAP_MARKED && mark->reap == reap && mark->number == reap->mark &&
           mark->place == reap->mark_at && mark->depth == reap->depth;
}

/* --- open ------------------------------------------------------------------------------------ */

/* The hole's units, as a mark has them. A mark gives up a hole in the midst of a chunk that has too many
 * units for it, and one without units at a chunk's end, since records could take the mark's place. */
static uint32_t note_room(struct reap *reap)
{
    bool is_last = reap->current && reap_unit(reap->bump_max) == reap->current->end_unit;
    if (is_last && reap->bump == reap->bump_max) reap_free_leave_hole(reap);
    if (!reap->current || is_last) return TO_THE_END;
    size_t room = (size_t)(reap->bump_max - reap->bump) / REAP_UNIT;
    if (LIKELY(room < TO_THE_END)) return (uint32_t)room;
    reap_free_leave_hole(reap);
    return TO_THE_END;
}

static ALWAYS_INLINE void open_mark(struct reap *reap, reap_mark *mark, unsigned depth, uint32_t room)
{
    uint64_t outer = depth ? reap->mark : 0;
    *mark = (reap_mark){reap, reap->bump, reap->mark_at, next_number(), outer, depth + 1, room};
    reap->mark = mark->number;
    reap->mark_at = reap->bump;
    raise_depth(reap, depth + 1);
}

static NOINLINE void mark_any(void **handle, reap_mark *mark)
{
    HELD struct reap *reap = reap_hold(handle, "reapMark");
    REAP_NOT_NULL(mark, "reapMark");
    reap_alloc_take_remote(reap);
    ASSERT_SOUND(reap);
    unsigned depth = reap_depth(reap);
    if (depth == UINT16_MAX) report_misuse("reapMark", reap_handle(reap), "65535 marks are open already");
    limit_suspend(reap);
    reap_free_mark(reap);
    open_mark(reap, mark, depth, note_room(reap));
    limit_resume(reap);
}

void reapMark(void **handle, reap_mark *mark)
{
    struct reap *reap = usual(handle);
    unsigned depth = reap ? reap_depth(reap) : UINT16_MAX;
    if (LIKELY(depth != UINT16_MAX && UNKNOWN(mark) && only_bumps(reap)))
        open_mark(reap, mark, depth, TO_THE_END);
    else
        mark_any(handle, mark);
}

/* --- rewind ---------------------------------------------------------------------------------- */

/* Frees a chunk that is younger than the mark. One with records must stay. */
static void discard(struct reap *reap, struct reap_chunk *chunk, unsigned depth)
{
    if (chunk->has_records) {
        reap_free_wipe(chunk, chunk->first, chunk->end_unit);
        chunk->depth = (uint16_t)(depth - 1);
        chunk->top = chunk->first;
    } else {
        reap_chunk_release(reap, chunk);
    }
}

/* Makes the hole what it was at the mark. */
static void rewind_to(struct reap *reap, struct reap_chunk *chunk, const reap_mark *mark)
{
    size_t unit = reap_unit(mark->place), end = end_of(chunk, mark);
    size_t top = chunk == reap->current ? reap_unit(reap->bump) : chunk->top;
    if (top > chunk->high) chunk->high = top;
    reap_free_wipe(chunk, unit, end);
    reap_chunk_bump_in(reap, chunk, unit, end);
}

void reap_mark_rewind(struct reap *reap, const reap_mark *mark)
{
    ASSERT_SOUND(reap);
    bool limited = reap->flags & REAP_LIMITED;
    if (limited) reap_quota_suspend(reap);
    struct reap_chunk *to = mark->place ? chunk_of(mark->place, NULL) : NULL;
    size_t freed = limited && to ? reap_chunk_units(to) : 0;
    if (reap->current != to) reap_free_leave_hole(reap);
    for (struct reap_chunk *next, *chunk = reap->chunks; chunk && chunk->depth >= mark->depth; chunk = next) {
        next = chunk->next;
        if (limited) freed += reap_chunk_units(chunk);
        discard(reap, chunk, mark->depth);
    }
    if (to) rewind_to(reap, to, mark);
    if (limited && to) freed -= reap_chunk_units(to);
    reap->mark = mark->number;
    reap->mark_at = mark->place;
    set_depth(reap, mark->depth);
    reap_choose_mode(reap);
    if (!limited) return;
    reap_quota_give(reap, freed * REAP_UNIT);
    reap_quota_resume(reap);
}

bool reap_mark_rewind_usual(void **handle, const reap_mark *mark)
{
    struct reap *reap = usual(handle);
    if (UNLIKELY(!reap || !is_last(reap, mark) || mark->room != TO_THE_END || !only_bumps(reap)))
        return false;
    struct reap_chunk *chunk = reap->current;
    size_t unit = reap_unit(mark->place), top = reap_unit(reap->bump);
    bool is_young = reap->chunks && reap->chunks->depth >= mark->depth;
    bool is_asked = reap->cleanups && reap->cleanups->depth >= mark->depth;
    if (is_young || is_asked || unit < chunk->first || unit > top || reap_tree_has_children(reap))
        return false;
    if (top > chunk->high) chunk->high = top;
    bitmap_clear_range(chunk->starts, unit + 1, top + 1);
    reap->bump = mark->place;
    return true;
}

/* --- close ----------------------------------------------------------------------------------- */

/* Lowers the depth of younger functions and chunks, those of later marks among them. */
static ALWAYS_INLINE void close_mark(struct reap *reap, const reap_mark *mark)
{
    unsigned outside = mark->depth - 1u;
    for (struct reap_cleanup *it = reap->cleanups; it && it->depth > outside; it = it->next)
        it->depth = outside;
    for (struct reap_chunk *it = reap->chunks; it && it->depth > outside; it = it->next)
        it->depth = (uint16_t)outside;
    reap->mark = mark->outer;
    reap->mark_at = mark->outer_place;
    set_depth(reap, outside);
}

static NOINLINE void unmark_any(void **handle, const reap_mark *mark)
{
    HELD struct reap *reap = reap_hold(handle, "reapUnmark");
    reap_mark_check(reap, mark, "reapUnmark");
    if (UNLIKELY(reap_tree_is_going(reap)) && mark->depth <= reap->going_to)
        report_misuse("reapUnmark", mark, "reap is going back to it, or to a later mark");
    ASSERT_SOUND(reap);
    limit_suspend(reap);
    close_mark(reap, mark);
    if (!(reap->flags & REAP_MARKED)) reap_free_unmark(reap);
    reap_choose_mode(reap);
    limit_resume(reap);
}

void reapUnmark(void **handle, const reap_mark *mark)
{
    struct reap *reap = usual(handle);
    if (LIKELY(reap && is_last(reap, mark)))
        close_mark(reap, mark);
    else
        unmark_any(handle, mark);
}
