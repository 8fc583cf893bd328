/* SPDX-License-Identifier: Apache-2.0 */
/* reap_stats.c: statistics and walks. They count objects from the bitmaps when asked, so that allocation
 * keeps no counts. */
#include "reap/reap_stats.h"

#include "reap.h"

#include <string.h>

#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"

/* --- numbers --------------------------------------------------------------------------------- */

/* Counts a chunk of a reap that other threads may use and end meanwhile: then all chunks are frozen, so their
 * memory stays. But two words may be from different times or chunks, so each word is checked before it is
 * used. False: the chunk is not this reap's any more, or is being changed. */
static bool count_chunk(const struct reap *reap, const struct reap_chunk *chunk, struct reap_stats *stats)
{
    struct reap_chunk copy;
    if (!chunk_is_readable(chunk, sizeof copy)) return false;
    memcpy(&copy, chunk, sizeof copy);
    bool is_whole = copy.kind == REAP_WHOLE;
    if (copy.owner != reap || (!is_whole && !reap_bits_are_readable(chunk, &copy))) return false;
    size_t units = copy.end_unit - copy.first;
    if (is_whole)
        stats->live_objects++;
    else
        units = reap_chunk_count(&copy, reap_chunk_top_by(chunk, &copy), &stats->live_objects);
    stats->live_bytes += units * REAP_UNIT;
    stats->chunks++;
    return true;
}

static bool is_spare(const struct reap_chunk *chunk)
{
    return chunk && chunk_is_readable(chunk, sizeof *chunk) && chunk->kind == REAP_SPARE;
}

/* The bytes of a reap's cached child, which other threads may set or take at any time, and give back then. */
static size_t cached_by(const struct reap *reap)
{
    struct reap_list *list = (struct reap_list *)(uintptr_t)&reap->below;
    if (!atomic_load_explicit(&list->cached, memory_order_relaxed)) return 0;
    reap_tree_lock_below(list);
    const struct reap *cached = atomic_load_explicit(&list->cached, memory_order_relaxed);
    size_t bytes = cached ? reap_first_chunk(cached)->size : 0;
    reap_tree_unlock_below(list);
    return bytes;
}

static size_t held_by(const struct reap *reap)
{
    size_t bytes = __atomic_load_n(&reap->held, __ATOMIC_RELAXED);
    if (UNLIKELY(reap_is_shared(reap))) bytes += reap_shared_held_in_parts(reap);
    return bytes + cached_by(reap);
}

/* At least `held`. The peaks of a shared reap's parts need not be of one time: their sum is a bound. */
static size_t peak_of(const struct reap *reap, size_t held)
{
    size_t peak = reap->peak;
    if (UNLIKELY(reap_is_shared(reap))) {
        peak += reap_shared_held_in_parts(reap);
        for (const struct reap *part = reap_next_part(reap); part; part = reap_next_part(part))
            peak += part->peak - part->held;
    }
    return peak > held ? peak : held;
}

size_t reapPeakBytes(void **handle)
{
    HELD struct reap *reap = reap_hold(handle, "reapPeakBytes");
    return peak_of(reap, held_by(reap));
}

void reap_stats_of(const struct reap *reap, struct reap_stats *stats)
{
    *stats = (struct reap_stats){.chunk_bytes = held_by(reap), .limit = reap_quota_of(reap)};
    for (const struct reap *part = reap; part; part = reap_next_part(part)) {
        const struct reap_chunk *chunk = reap_chunk_begin(part);
        while (chunk && count_chunk(part, chunk, stats)) chunk = reap_chunk_after(part, chunk);
        for (chunk = reap_spares(part); is_spare(chunk); chunk = chunk->next) stats->chunks++;
    }
    stats->chunks += atomic_load_explicit(&reap->below.cached, memory_order_relaxed) != NULL;
    stats->peak_chunk_bytes = peak_of(reap, stats->chunk_bytes);
}

int reapStats(void **handle, struct reap_stats *stats)
{
    HELD struct reap *reap = reap_hold(handle, "reapStats");
    REAP_NOT_NULL(stats, "reapStats");
    reap_alloc_take_remote(reap);
    reap_stats_of(reap, stats);
    stats->children = reap_tree_count(reap);
    return 0;
}

static bool add_held(struct reap *reap, unsigned depth, void *bytes)
{
    (void)depth;
    *(size_t *)bytes += held_by(reap);
    return true;
}

size_t reapHeldBytes(void **handle)
{
    HELD struct reap *reap = reap_hold_lightly(handle, "reapHeldBytes");
    size_t bytes = held_by(reap);
    if (LIKELY(!reap_tree_has_children(reap))) return bytes;
    reap_tree_lock(&reap->below);
    reap_tree_walk(&reap->below, add_held, &bytes);
    reap_tree_unlock(&reap->below);
    return bytes;
}

/* --- objects --------------------------------------------------------------------------------- */

struct place {
    const struct reap *reap; /* the walked one, or a hidden child of it */
    struct reap_chunk *chunk;
    size_t unit;
};

/* Moves a place to the first live object at it or behind it, also in later parts. False: there is none. */
static bool find_object(struct place *place)
{
    for (;;) {
        struct reap_chunk *chunk = place->chunk;
        place->unit = reap_chunk_next_object(chunk, place->unit);
        if (place->unit != SIZE_MAX) return true;
        place->unit = 0;
        place->chunk = reap_chunk_after(place->reap, chunk);
        if (place->chunk) continue;
        place->reap = reap_next_part(place->reap);
        if (!place->reap) return false;
        place->chunk = reap_chunk_begin(place->reap);
    }
}

/* Aborts when the walk's next object is gone: fn has freed another object than its own, or all of them. */
static void check_place(const struct place *place)
{
    const struct reap *reap = place->reap;
    const struct reap_chunk *chunk = place->chunk;
    const void *object = reap_address(place->unit);
    bool is_there = chunk_of(object, NULL) == chunk && reap_chunk_is_live(chunk) && chunk->owner == reap;
    if (UNLIKELY(!is_there || !reap_is_object(chunk, object))) reap_misuse_object("reapWalk", reap, object);
}

/* The walk finds the next object before it calls fn. If fn frees its object, the blocks behind it may change,
 * and its chunk may go, but not a chunk with another live object. */
int reapWalk(void **handle, int (*fn)(void *object, size_t size, void *arg), void *arg)
{
    HELD struct reap *reap = reap_hold(handle, "reapWalk");
    REAP_NOT_NULL(fn, "reapWalk");
    reap_alloc_take_remote(reap);
    struct place next = {.reap = reap, .chunk = reap_chunk_begin(reap)};
    bool more = find_object(&next);
    struct reap_walk walk = {reap, NULL, reap_walk};
    reap_walk = &walk;
    int result = 0;
    while (more && result == 0) {
        struct place here = next;
        size_t end = reap_block_end(here.chunk, here.unit);
        ASSERT(reap_is_object(here.chunk, reap_address(here.unit)) && end > here.unit);
        next.unit = end;
        more = find_object(&next);
        void *object = reap_address(here.unit);
        size_t size = (end - here.unit) * REAP_UNIT;
        reap_use_all(here.chunk, size);
        walk.reap = next.reap;
        walk.coming = more ? reap_address(next.unit) : NULL;
        result = fn(object, size, arg);
        if (more && result == 0) check_place(&next);
    }
    reap_walk = walk.outer;
    return result;
}
