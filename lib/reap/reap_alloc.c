/* SPDX-License-Identifier: Apache-2.0 */
/* reap_alloc.c: the slow path of allocation, and freeing and resizing. */
#include "reap/reap_alloc.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "reap/misuse.h"
#include "reap/quota.h"
#include "reap/validate.h"
#include "region/reap_free.h"

/* --- pending objects ------------------------------------------------------------------------- */

__thread struct reap_walk *reap_walk;

/* Returns true if a walk of this thread over the reap comes to the object next. */
static COLD bool is_coming(const struct reap *reap, const void *object)
{
    for (const struct reap_walk *walk = reap_walk; walk; walk = walk->outer)
        if (walk->reap == reap && walk->coming == object) return true;
    return false;
}

static void free_counted(struct reap *reap, struct reap_chunk *chunk, void *object);

/* Frees all pending objects but those that walks come to next. An object that was pushed twice is on the
 * list twice, or the list is a ring: either way the loop comes to it again, and the check finds it. The
 * cache of another processor has each object: so the loop prefetches it some time before. */
static NOINLINE void drain_remote(struct reap *reap)
{
    bool walked = reap_walk != NULL;
    uintptr_t link = atomic_exchange_explicit(&reap->remote, 0, memory_order_acquire);
    while (link) {
        uintptr_t *words = reap_link_object(link);
        if (LIKELY(reap_link_points_out(link))) __builtin_prefetch((void *)words[2], 1);
        uintptr_t counted = link & REAP_LINK_COUNTED;
        link = words[0];
        if (UNLIKELY(walked) && is_coming(reap, words)) {
            reap_push_pending(reap, words, reap_link(words, false) | counted);
            continue;
        }
        words[1] = 0; /* not reap_pending() any more */
        ASSERT((uintptr_t)words % REAP_UNIT == 0);
        if (UNLIKELY(counted))
            free_counted(reap, reap_chunk_of_object(reap, words, "free"), words);
        else if (!reap_free_fast(reap, words) && !reap_free_in_region(reap, words) &&
                 !reap_free_by_chunk(reap, words))
            reap_alloc_free(reap, reap_chunk_of_object(reap, words, "free"), words);
    }
}

static inline void take_some_remote(struct reap *reap)
{
    if (UNLIKELY(atomic_load_explicit(&reap->remote, memory_order_relaxed) != 0)) drain_remote(reap);
}

void reap_alloc_take_remote(struct reap *reap)
{
    reap_chunk_adopt(reap);
    take_some_remote(reap);
}

void reap_alloc_take_remote_below(struct reap *top)
{
    for (struct reap *reap = top; reap; reap = reap_part_after(top, reap)) reap_alloc_take_remote(reap);
}

/* --- records --------------------------------------------------------------------------------- */

enum { RECORD_LOOKS = 8 /* chunks in which a record is tried before the reap grows */ };

static void *record_in_chunks(struct reap *reap, size_t size, unsigned looks)
{
    void *record = NULL;
    struct reap_chunk *chunk = reap_chunk_begin(reap);
    for (; chunk && looks > 0 && !record; chunk = reap_chunk_after(reap, chunk), looks--)
        record = reap_chunk_record(reap, chunk, size);
    return record;
}

void *reap_alloc_record(struct reap *reap, size_t size)
{
    ASSERT(size != 0 && size <= REAP_LARGE);
    limit_suspend(reap);
    void *record = reap->current ? reap_chunk_record(reap, reap->current, size) : NULL;
    if (!record) record = record_in_chunks(reap, size, RECORD_LOOKS);
    if (!record && reap_free_grow_hole(reap, reap_units(size)))
        record = reap_chunk_record(reap, reap->current, size);
    if (UNLIKELY(apart_on)) reap_free_leave_hole(reap);
    if (!record && reap->heap && !(reap->flags & REAP_MARKED)) {
        reap_free_flush(reap);
        record = record_in_chunks(reap, size, UINT_MAX);
    }
    limit_resume(reap);
    return record;
}

/* --- allocation ------------------------------------------------------------------------------ */

static void *alloc_whole(struct reap *reap, size_t alignment, size_t size, bool *zeroed)
{
    struct reap_chunk *chunk = reap_chunk_whole(reap, alignment, size, zeroed);
    if (!chunk) return NULL;
    ASSERT(chunk->kind == REAP_WHOLE && chunk->owner == reap);
    reap_chunk_hold(reap, chunk);
    return reap_address(chunk->first);
}

/* Makes an aligned object of a bigger one of `have` units, and frees the rest before and behind it. */
static void *trim_aligned(struct reap *reap, void *object, size_t have, size_t alignment, size_t units)
{
    struct reap_chunk *chunk = reap_chunk_find(reap, object);
    size_t unit = reap_unit(object), step = alignment / REAP_UNIT, aligned = (unit + step - 1) / step * step;
    ASSERT(chunk && aligned + units <= unit + have);
    if (aligned + units < unit + have) reap_free_end(reap, chunk, aligned + units, unit + have);
    if (aligned > unit) reap_free_begin(reap, chunk, unit, aligned);
    return reap_address(aligned);
}

/* Allocates an object from the memory of a reap whose limit is suspended. A large one has a chunk of its own,
 * and where objects lie apart (apart.h) each one. */
static ALWAYS_INLINE void *allocate(struct reap *reap, size_t alignment, size_t size, bool *zeroed)
{
    ASSERT(is_power_of_two(alignment));
    size_t room = alignment > REAP_UNIT ? alignment : 0, units = reap_units(size);
    size_t have = units + (alignment - 1) / REAP_UNIT, both = size > PTRDIFF_MAX ? size : size + room;
    *zeroed = false;
    if (apart_on || reap_is_large(reap, both)) return alloc_whole(reap, alignment, size, zeroed);
    void *object = reap_free_take(reap, have);
    return object && have > units ? trim_aligned(reap, object, have, alignment, units) : object;
}

/* Before an allocation in a reap that may be limited: suspends the limit and draws bytes more, for this
 * object or (NULL) a new one. False: a limit would be exceeded. */
static bool begin_more(struct reap *reap, size_t bytes, size_t asked, const void *object)
{
    if (!(reap->flags & REAP_LIMITED)) return true;
    reap_quota_suspend(reap);
    if (reap_quota_take(reap, bytes, asked, object)) return true;
    limit_resume(reap);
    return false;
}

/* After it: gives back those of the bytes that no object has taken, and resumes the limit. */
static void end_more(struct reap *reap, size_t bytes)
{
    if (!(reap->flags & REAP_LIMITED)) return;
    ASSERT(!reap_share(reap)->from);
    reap_quota_give(reap, bytes);
    reap_quota_resume(reap);
}

/* The bytes that an object of a size takes; 0 for an impossible size, whose allocation will fail. */
static size_t cost(size_t size) { return size > PTRDIFF_MAX ? 0 : reap_units(size) * REAP_UNIT; }

/* Allocates an object in a reap that may be limited or watched. */
static ALWAYS_INLINE void *alloc_counted(struct reap *reap, size_t alignment, size_t size, bool *zeroed)
{
    if (!begin_more(reap, cost(size), size, NULL)) return NULL;
    void *object = allocate(reap, alignment, size, zeroed);
    end_more(reap, object ? 0 : cost(size));
    return object;
}

static NOINLINE void *alloc_special(struct reap *reap, size_t size, bool *zeroed)
{
    return alloc_counted(reap, REAP_UNIT, size, zeroed);
}

/* The sources of an object that no fast path has found, in order; reap_free_take uses what others freed. */
static ALWAYS_INLINE void *alloc_slow(struct reap *reap, size_t size, bool *zeroed)
{
    ASSERT_SOUND(reap);
    take_some_remote(reap);
    *zeroed = false;
    if (UNLIKELY(reap->flags & REAP_SPECIAL)) return alloc_special(reap, size, zeroed);
    if (reap_is_large(reap, size)) return alloc_whole(reap, REAP_UNIT, size, zeroed);
    return reap_free_take(reap, reap_units(size));
}

void *reap_alloc_zeroed(struct reap *reap, size_t size, bool *zeroed)
{
    return alloc_slow(reap, size, zeroed);
}

void *reap_alloc(struct reap *reap, size_t size)
{
    bool zeroed;
    return alloc_slow(reap, size, &zeroed);
}

void *reap_alloc_aligned(struct reap *reap, size_t alignment, size_t size)
{
    bool zeroed;
    ASSERT_SOUND(reap);
    take_some_remote(reap);
    return alloc_counted(reap, alignment <= REAP_UNIT ? REAP_UNIT : alignment, size, &zeroed);
}

/* --- freeing and resizing -------------------------------------------------------------------- */

static ALWAYS_INLINE void release(struct reap *reap, struct reap_chunk *chunk, size_t unit)
{
    ASSERT(chunk->owner == reap && reap_chunk_is_live(chunk) && unit >= chunk->first);
    if (LIKELY(chunk->kind != REAP_WHOLE)) {
        reap_free_object(reap, chunk, unit);
        return;
    }
    reap_chunk_adopt(reap); /* the chunk may be among the remote ones */
    reap_chunk_release(reap, chunk);
}

/* After a large object has gone, or got another size, below a limit: where more than a sixteenth of the limit
 * is unused in the process, unused memory goes back to the OS, but at most twice as much as the object had.
 * So what a tree frees is used by it, or goes back before it adds much to what the limit allows. */
enum { UNUSED_LEAST = 4 * 1024 * 1024 /* bytes that may be unused below any limit */ };
static void give_unused_back(const struct reap *reap, size_t bytes)
{
    if (bytes <= REAP_LARGE || !(reap->flags & REAP_LIMITED)) return;
    size_t keep = reap_share(reap_share(reap)->limiter)->bytes / 16;
    chunk_purge(keep > UNUSED_LEAST ? keep : UNUSED_LEAST, 2 * bytes);
}

/* is_counted: the object was pending, and limits may have had its bytes back already. */
static ALWAYS_INLINE void free_as(struct reap *reap, struct reap_chunk *chunk, void *object, bool is_counted)
{
    size_t unit = reap_unit(object), bytes = (reap_block_end(chunk, unit) - unit) * REAP_UNIT;
    if (reap_chunk_is_apart(chunk)) reap_note_object(chunk);
    limit_suspend(reap);
    release(reap, chunk, unit);
    end_more(reap, is_counted ? bytes - reap_quota_settle(reap, bytes) : bytes);
    give_unused_back(reap, bytes);
}

static NOINLINE void free_special(struct reap *reap, struct reap_chunk *chunk, void *object)
{
    free_as(reap, chunk, object, false);
}

static NOINLINE void free_counted(struct reap *reap, struct reap_chunk *chunk, void *object)
{
    free_as(reap, chunk, object, true);
}

void reap_alloc_free(struct reap *reap, struct reap_chunk *chunk, void *object)
{
    ASSERT_SOUND(reap);
    ASSERT(chunk->owner == reap && reap_is_object(chunk, object));
    if (UNLIKELY(reap->flags & REAP_SPECIAL))
        free_special(reap, chunk, object);
    else
        release(reap, chunk, reap_unit(object));
}

/* Moves an object of `have` units to a place in `to`, where it gets another size. */
static void *move_object(struct reap *reap, struct reap_chunk *chunk, void *object, size_t have,
                         struct reap *to, size_t size)
{
    bool zeroed;
    void *copy = allocate(to, REAP_UNIT, size, &zeroed);
    if (!copy) return NULL;
    ASSERT(copy != object && have != 0);
    reap_use_all(chunk, have * REAP_UNIT);
    memcpy(copy, object, have * REAP_UNIT < size ? have * REAP_UNIT : size);
    release(reap, chunk, reap_unit(object));
    return copy;
}

/* Resizes a large object in place, or with its pages, where that works. One that has become small, or whose
 * chunk is more than twice as big as needed, then moves if there is memory for that. */
static void *resize_whole(struct reap *reap, struct reap_chunk *chunk, void *object, size_t size)
{
    ASSERT(reap_address(chunk->first) == object);
    reap_chunk_adopt(reap);
    bool small = size <= REAP_LARGE / 4;
    bool done = size <= PTRDIFF_MAX && reap_chunk_resize(reap, chunk, reap_units(size));
    if (done && reap_chunk_is_apart(chunk)) apart_set_size(chunk, size);
    if (done && !small && chunk->size / 2 <= size) return object;
    if (!done && size <= PTRDIFF_MAX && reap_units(size) > chunk->end_unit - chunk->first) {
        struct reap_chunk *moved = reap_chunk_grow(reap, chunk, reap_units(size));
        if (moved) return reap_address(moved->first);
    }
    void *copy = move_object(reap, chunk, object, chunk->end_unit - chunk->first, reap, size);
    return copy || !done ? copy : object;
}

static void *resize_object(struct reap *reap, struct reap_chunk *chunk, void *object, size_t size)
{
    if (UNLIKELY(chunk->kind == REAP_WHOLE)) return resize_whole(reap, chunk, object, size);
    size_t unit = reap_unit(object), end = reap_block_end(chunk, unit), have = end - unit;
    if (size > have * REAP_UNIT) {
        bool grown =
            !reap_is_large(reap, size) && reap_free_grow(reap, chunk, unit, end, reap_units(size) - have);
        return grown ? object : move_object(reap, chunk, object, have, reap, size);
    }
    if (reap_units(size) < have) reap_free_end(reap, chunk, unit + reap_units(size), end);
    return object;
}

/* Only the bytes that live afterwards count, not those that a move needs for a moment. */
static NOINLINE void *resize_special(struct reap *reap, struct reap_chunk *chunk, void *object, size_t size)
{
    size_t unit = reap_unit(object), want = cost(size);
    size_t have = (reap_block_end(chunk, unit) - unit) * REAP_UNIT;
    size_t more = want > have ? want - have : 0;
    if (!begin_more(reap, more, size, object)) return NULL;
    void *resized = resize_object(reap, chunk, object, size);
    end_more(reap, resized ? have + more - want : more);
    give_unused_back(reap, have);
    return resized;
}

/* Lets an object of the hole's chunk grow in region mode: the copy bumps, and the old one is dead. NULL:
 * that is not possible, or it grows in its place, and nothing has changed. */
static ALWAYS_INLINE void *grow_by_bump(struct reap *reap, struct reap_chunk *chunk, void *object,
                                        size_t size)
{
    if (chunk != reap->current || !reap_dead_may_be_set(reap) || size > REAP_LARGE) return NULL;
    size_t unit = reap_unit(object), end = reap_block_end(chunk, unit), have = (end - unit) * REAP_UNIT;
    if (size <= have || end == reap_unit(reap->bump)) return NULL;
    if (size - 1 >= (size_t)(reap->bump_max - reap->bump)) return NULL;
    void *copy = reap_bump_over(reap, size);
    memcpy(copy, object, have);
    reap_dead_set(reap, chunk, unit, end);
    reap->end = reap_dead_is_asked(reap) ? reap->bump : reap->bump_max;
    return copy;
}

void *reap_alloc_resize(struct reap *reap, struct reap_chunk *chunk, void *object, size_t size)
{
    ASSERT_SOUND(reap);
    ASSERT(chunk->owner == reap && reap_is_object(chunk, object));
    void *grown = grow_by_bump(reap, chunk, object, size);
    if (grown) return grown;
    take_some_remote(reap);
    if (UNLIKELY(reap->flags & REAP_SPECIAL)) return resize_special(reap, chunk, object, size);
    return resize_object(reap, chunk, object, size);
}

void *reap_alloc_resize_in(struct reap *from, struct reap_chunk *chunk, void *object, struct reap *to,
                           size_t size)
{
    ASSERT(chunk->owner == from && from != to && reap_is_object(chunk, object));
    ASSERT_SOUND(from);
    ASSERT_SOUND(to);
    size_t unit = reap_unit(object), have = reap_block_end(chunk, unit) - unit, bytes = have * REAP_UNIT;
    size_t want = cost(size), more = want > bytes ? want - bytes : 0;
    if (!begin_more(to, more, size, object)) return NULL;
    limit_suspend(from);
    void *moved = move_object(from, chunk, object, have, to, size);
    if (moved && reap_quota_pass(from, object, to, want - more)) reap_quota_passed(from, to, want - more);
    end_more(from, moved ? bytes + more - want : 0);
    end_more(to, moved ? 0 : more);
    return moved;
}

/* --- to another reap ------------------------------------------------------------------------- */

static void *move_whole(struct reap *from, struct reap_chunk *chunk, void *object, struct reap *to)
{
    ASSERT(from != to && chunk->owner == from);
    reap_chunk_adopt(from); /* the chunk may be among the remote ones */
    reap_chunk_move(from, to, chunk);
    ASSERT(chunk->owner == to && reap_chunk_is_live(chunk));
    return object;
}

void *reap_alloc_move(struct reap *from, struct reap_chunk *chunk, void *object, struct reap *to)
{
    ASSERT(from != to && chunk->owner == from && reap_is_object(chunk, object));
    ASSERT_SOUND(from);
    ASSERT_SOUND(to);
    size_t unit = reap_unit(object), bytes = (reap_block_end(chunk, unit) - unit) * REAP_UNIT;
    reap_alloc_take_remote(to);
    if (!reap_quota_pass(from, object, to, bytes)) return NULL;
    limit_suspend(from);
    limit_suspend(to);
    bool whole = chunk->kind == REAP_WHOLE && (chunk->apart || !(reap_is_users(from) || reap_is_users(to)));
    void *moved = whole ? move_whole(from, chunk, object, to)
                        : move_object(from, chunk, object, bytes / REAP_UNIT, to, bytes);
    if (moved)
        reap_quota_passed(from, to, bytes);
    else
        reap_quota_passed(to, from, bytes);
    limit_resume(from);
    limit_resume(to);
    return moved;
}
