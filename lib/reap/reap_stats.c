/* SPDX-License-Identifier: Apache-2.0 */
/* reap_stats.c: statistics and walks. They count objects from the bitmaps when asked, so that allocation
 * keeps no counts. */
#include "reap/reap_stats.h"

#include "reap.h"

#include <string.h>

#include "base/report.h"
#include "reap/instrument.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_shared.h"
#include "reap/reap_trace.h"
#include "reap/reap_tree.h"

/* --- numbers --------------------------------------------------------------------------------- */

static void count_objects(const struct reap_chunk *chunk, size_t top, struct reap_stats *stats)
{
    stats->live_bytes += reap_chunk_count(chunk, top, &stats->live_objects) * REAP_UNIT;
}

static void count_whole(const struct reap_chunk *chunk, struct reap_stats *stats)
{
    stats->live_objects++;
    stats->live_bytes += (chunk->end_unit - chunk->first) * REAP_UNIT;
}

/* Counts the cached child chunk. Another thread may set or take it at any time, so held and peak are
 * without it. */
static void count_cached_child(const struct reap *reap, struct reap_stats *stats)
{
    if (!atomic_load_explicit(&reap->cached_child, memory_order_relaxed)) return;
    stats->chunks++;
    stats->chunk_bytes += reap_child_size(reap);
    if (stats->peak_chunk_bytes < stats->chunk_bytes) stats->peak_chunk_bytes = stats->chunk_bytes;
}

/* Counts one chunk. False: it is not this reap's any more, or another thread is changing it. */
typedef bool count_chunk(const struct reap *reap, const struct reap_chunk *chunk, struct reap_stats *stats);

static bool count_mine(const struct reap *reap, const struct reap_chunk *chunk, struct reap_stats *stats)
{
    ASSERT(chunk->owner == reap && reap_chunk_is_live(chunk));
    if (chunk->kind == REAP_WHOLE)
        count_whole(chunk, stats);
    else
        count_objects(chunk, reap_chunk_top(chunk), stats);
    stats->chunks++;
    return true;
}

/* Counts a chunk of a reap that other threads use, and may end meanwhile. All chunks are frozen, so their
 * memory stays. But two words may be from different times or chunks, so each word is checked before it is
 * used. */
static bool count_others(const struct reap *reap, const struct reap_chunk *chunk, struct reap_stats *stats)
{
    struct reap_chunk copy;
    if (!chunk_is_readable(chunk, sizeof copy)) return false;
    memcpy(&copy, chunk, sizeof copy);
    if (copy.owner != reap) return false;
    if (copy.kind == REAP_WHOLE) {
        count_whole(&copy, stats);
    } else {
        if (!reap_bits_are_readable(chunk, &copy)) return false;
        count_objects(&copy, reap_chunk_top_by(chunk, &copy), stats);
    }
    stats->chunks++;
    return true;
}

static bool is_spare(const struct reap_chunk *chunk)
{
    return chunk_is_readable(chunk, sizeof *chunk) && chunk->kind == REAP_SPARE;
}

static void count_part(const struct reap *reap, count_chunk *add, struct reap_stats *stats)
{
    const struct reap_chunk *chunk = reap_chunk_begin(reap);
    while (chunk && add(reap, chunk, stats)) chunk = reap_chunk_after(reap, chunk);
    for (chunk = reap_spares(reap); chunk && is_spare(chunk); chunk = chunk->next) stats->chunks++;
}

/* The parts of a shared reap need not have held the most at the same time: so that sum is an upper bound. */
static void count(const struct reap *reap, count_chunk *add, struct reap_stats *stats)
{
    *stats = (struct reap_stats){
        .chunk_bytes = reap->held, .peak_chunk_bytes = reap->peak, .limit = reap_quota_of(reap)};
    count_part(reap, add, stats);
    if (UNLIKELY(reap_is_shared(reap))) {
        for (const struct reap *part = reap_next_part(reap); part; part = reap_next_part(part)) {
            count_part(part, add, stats);
            stats->peak_chunk_bytes += part->peak - part->held;
        }
        stats->chunk_bytes += reap_shared_held_in_parts(reap);
        stats->peak_chunk_bytes += reap_shared_held_in_parts(reap);
    }
    count_cached_child(reap, stats);
}

void reap_stats_of_others(const struct reap *reap, struct reap_stats *stats)
{
    count(reap, count_others, stats);
}

void reap_stats_trace(const struct reap *reap, bool ends)
{
    struct reap_stats stats;
    char held[200];
    if (!reap_trace_on) return;
    count(reap, count_mine, &stats);
    size_t n = report_format(held, sizeof held, "%zu objects, %zu bytes, %zu chunks, %zu held",
                             stats.live_objects, stats.live_bytes, stats.chunks, stats.chunk_bytes);
    if (ends) report_format(held + n, sizeof held - n, ", %zu at most", stats.peak_chunk_bytes);
    reap_trace_held(reap, held, ends);
}

int reapStats(void **handle, struct reap_stats *stats)
{
    HELD struct reap *reap = reap_hold(handle, "reapStats");
    REAP_NOT_NULL(stats, "reapStats");
    reap_alloc_take_remote(reap);
    count(reap, count_mine, stats);
    stats->children = reap_tree_count(reap);
    return 0;
}

/* --- held bytes ------------------------------------------------------------------------------ */

/* The chunk_bytes of a reap's statistics. Its own thread may change them at any time. */
static size_t held_by(const struct reap *reap)
{
    size_t bytes = __atomic_load_n(&reap->held, __ATOMIC_RELAXED);
    if (UNLIKELY(reap_is_shared(reap))) bytes += reap_shared_held_in_parts(reap);
    bool keeps = atomic_load_explicit(&reap->cached_child, memory_order_relaxed) != NULL;
    return bytes + (keeps ? reap_child_size(reap) : 0);
}

static bool add_held(struct reap *reap, unsigned depth, void *bytes)
{
    (void)depth;
    *(size_t *)bytes += held_by(reap);
    return true;
}

static NOINLINE size_t held_below(struct reap *top)
{
    size_t bytes = 0;
    reap_tree_lock(&top->below);
    reap_tree_walk(&top->below, add_held, &bytes);
    reap_tree_unlock(&top->below);
    return bytes;
}

size_t reapHeldBytes(void **handle)
{
    HELD struct reap *reap = reap_hold_lightly(handle, "reapHeldBytes");
    size_t bytes = held_by(reap);
    return LIKELY(!reap_tree_has_children(reap)) ? bytes : bytes + held_below(reap);
}

/* --- objects --------------------------------------------------------------------------------- */

struct place {
    const struct reap *reap; /* the walked one, or a hidden child of it */
    struct reap_chunk *chunk;
    size_t unit;
};

/* Moves a place, where a block may start, to the first live object in its reap at it or behind it. False:
 * there is none. */
static bool find_in_part(struct place *place)
{
    const struct reap *reap = place->reap;
    for (; place->chunk; place->chunk = reap_chunk_after(reap, place->chunk), place->unit = 0) {
        struct reap_chunk *chunk = place->chunk;
        if (chunk->kind == REAP_WHOLE) {
            if (place->unit > chunk->first) continue;
            place->unit = chunk->first;
            return true;
        }
        place->unit = reap_chunk_next_object(chunk, place->unit);
        if (place->unit != SIZE_MAX) return true;
    }
    return false;
}

static bool find_object(struct place *place)
{
    while (!find_in_part(place)) {
        const struct reap *next = reap_next_part(place->reap);
        if (!next) return false;
        *place = (struct place){.reap = next, .chunk = reap_chunk_begin(next)};
    }
    return true;
}

/* Aborts when the walk's next object is gone: fn has freed another object than its own, cleared the reap, or
 * gone back to a mark. */
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
    bool more = find_object(&next), within = reap->walked;
    const void *coming = within ? reap->coming : NULL; /* of the walk around this one */
    int result = 0;
    while (more && result == 0) {
        struct place here = next;
        size_t end = reap_block_end(here.chunk, here.unit);
        ASSERT(reap_is_object(here.chunk, reap_address(here.unit)) && end > here.unit);
        next.unit = end;
        more = find_object(&next);
        void *object = reap_address(here.unit);
        size_t size = (end - here.unit) * REAP_UNIT;
        if (UNLIKELY(reap_instrumented)) reap_instrument_widen(reap, object, size);
        reap->coming = more ? reap_address(next.unit) : NULL;
        reap->walked = true;
        result = fn(object, size, arg);
        if (more && result == 0) check_place(&next);
    }
    reap->walked = within;
    reap->coming = coming;
    return result;
}
