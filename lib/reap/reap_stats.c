/* SPDX-License-Identifier: Apache-2.0 */
/* reap_stats.c: statistics, walks and reports. They count objects from the bitmaps when asked, so that
 * allocation keeps no counts. */
#include "reap/reap_stats.h"

#include "reap.h"

#include <pthread.h>
#include <string.h>

#include "base/options.h"
#include "base/report.h"
#include "reap/instrument.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_shared.h"
#include "reap/reap_trace.h"
#include "reap/reap_tree.h"
#include "region/interned.h"

enum { BATCH = 64, INDENT = 2, DEEP = 40 /* levels; further ones are numbered: a tree may be very deep */ };

/* --- numbers --------------------------------------------------------------------------------- */

/* Counts the blocks below a unit that are not free. */
static size_t count_objects(const struct reap_chunk *chunk, size_t top)
{
    size_t count = 0;
    if (chunk->kind == REAP_WHOLE) return 1;
    for (size_t i = 0; i * 64 < top; i++) {
        uint64_t word = chunk->starts[i];
        if (chunk->frees) word &= ~chunk->frees[i];
        count += (size_t)__builtin_popcountll(word);
    }
    return count;
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
    stats->live_bytes += reap_chunk_live_units(reap, chunk) * REAP_UNIT;
    stats->live_objects += count_objects(chunk, reap_chunk_top(reap, chunk));
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
    size_t top = copy.kind == REAP_WHOLE ? 0 : reap_chunk_top(reap, chunk), live = copy.live_units;
    if (copy.owner != reap) return false;
    if (copy.kind != REAP_WHOLE) {
        size_t bytes = (top / 64 + 1) * sizeof(uint64_t);
        live -= copy.end_unit - top;
        if (live > top || top > copy.size / REAP_UNIT || !chunk_is_readable(copy.starts, bytes)) return false;
        if (copy.frees && !chunk_is_readable(copy.frees, bytes)) return false;
    }
    stats->live_bytes += live * REAP_UNIT;
    stats->live_objects += count_objects(&copy, top);
    stats->chunks++;
    return true;
}

static bool is_spare(const struct reap_chunk *chunk)
{
    return chunk_is_readable(chunk, sizeof *chunk) && chunk->kind == REAP_SPARE;
}

static void count(const struct reap *reap, count_chunk *add, struct reap_stats *stats)
{
    *stats = (struct reap_stats){
        .chunk_bytes = reap->held, .peak_chunk_bytes = reap->peak, .limit = reap_quota_of(reap)};
    const struct reap_chunk *chunk = reap_chunk_begin(reap);
    while (chunk && add(reap, chunk, stats)) chunk = reap_chunk_after(reap, chunk);
    for (chunk = reap_spares(reap); chunk && is_spare(chunk); chunk = chunk->next) stats->chunks++;
    count_cached_child(reap, stats);
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

/* --- objects --------------------------------------------------------------------------------- */

struct place {
    struct reap_chunk *chunk;
    size_t unit;
};

/* Moves a place, where a block may start, to the first live object at it or behind it. False: there is
 * none. */
static bool find_object(const struct reap *reap, struct place *place)
{
    for (; place->chunk; place->chunk = reap_chunk_after(reap, place->chunk), place->unit = 0) {
        struct reap_chunk *chunk = place->chunk;
        size_t top = reap_chunk_top(reap, chunk);
        if (chunk->kind == REAP_WHOLE) {
            if (place->unit > chunk->first) continue;
            place->unit = chunk->first;
            return true;
        }
        place->unit = bitmap_next(chunk->starts, place->unit, top);
        while (place->unit < top && reap_is_free(chunk, place->unit))
            place->unit = bitmap_next(chunk->starts, place->unit + 1, top);
        if (place->unit < top) return true;
    }
    return false;
}

/* Aborts when the walk's next object is gone: fn has freed another object than its own, cleared the reap, or
 * gone back to a mark. */
static void check_place(const struct reap *reap, const struct place *place)
{
    const struct reap_chunk *chunk = place->chunk;
    const void *object = reap_address(chunk, place->unit);
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
    struct place next = {.chunk = reap_chunk_begin(reap)};
    bool more = find_object(reap, &next), within = reap->walked;
    const void *coming = within ? reap->coming : NULL; /* of the walk around this one */
    int result = 0;
    while (more && result == 0) {
        struct place here = next;
        size_t end = reap_block_end(reap, here.chunk, here.unit);
        ASSERT(reap_is_object(here.chunk, reap_address(here.chunk, here.unit)) && end > here.unit);
        next.unit = end;
        more = find_object(reap, &next);
        void *object = reap_address(here.chunk, here.unit);
        size_t size = (end - here.unit) * REAP_UNIT;
        if (UNLIKELY(reap_instrumented)) reap_instrument_widen(reap, object, size);
        reap->coming = more ? reap_address(next.chunk, next.unit) : NULL;
        reap->walked = true;
        result = fn(object, size, arg);
        if (more && result == 0) check_place(reap, &next);
    }
    reap->walked = within;
    reap->coming = coming;
    return result;
}

/* --- reports --------------------------------------------------------------------------------- */

/* The data to print of a reap that other threads may use, and end. It is read while all chunks are frozen,
 * and printed afterwards, because printing may allocate. */
struct view {
    struct reap *parent, *children, *next;
    void *handle;
    struct reap_stats stats;
    char name[REAP_NAME_MAX], above[REAP_NAME_MAX];
};

static bool is_reap(const struct reap *reap)
{
    const struct reap_chunk *chunk = chunk_of(reap, NULL);
    return chunk && reap_chunk_is_live(chunk) && chunk->owner == reap &&
           (reap->tag == reap_tag(reap) || reap_is_shared(reap));
}

static void read_name(const struct reap *reap, char *text)
{
    const struct reap_name *name = reap->name;
    *text = '\0';
    if (!name || (!interned_is(name) && !chunk_is_readable(name, sizeof *name))) return;
    size_t room = name->room < REAP_NAME_MAX ? name->room : REAP_NAME_MAX - 1;
    if (!interned_is(name) && !chunk_is_readable(name->text, room)) return;
    memcpy(text, name->text, room);
    text[room] = '\0';
}

/* Reads the data of a reap. False: the reap has ended. */
static bool look_at(struct reap *reap, struct view *view)
{
    chunk_freeze();
    bool is = is_reap(reap);
    if (is) {
        view->parent = reap->parent;
        view->children = reap->children;
        view->next = reap->next;
        view->handle = reap_handle(reap);
        count(reap, count_others, &view->stats);
        read_name(reap, view->name);
        view->above[0] = '\0';
        if (view->parent && is_reap(view->parent)) read_name(view->parent, view->above);
    }
    chunk_thaw();
    return is;
}

/* Writes the line of a reap that is left at exit, when the program's standard error may be closed already. */
static void say_left(const struct view *view)
{
    const char *above = view->above;
    report_end();
    char live[REPORT_BYTES], held[REPORT_BYTES];
    report_line("never destroyed: %.100s%s%p%s%.100s: %zu objects, %s, %s", view->name,
                *view->name ? " " : "", view->handle, *above ? " below " : "", above,
                view->stats.live_objects, report_bytes(live, view->stats.live_bytes, "bytes"),
                report_bytes(held, view->stats.chunk_bytes, "held"));
}

/* Prints the data of a reap to out; NULL: as a reap that is left at exit. */
static void print_view(const struct view *view, int depth, FILE *out)
{
    const struct reap_stats *stats = &view->stats;
    if (!out) {
        say_left(view);
        return;
    }
    fprintf(out, "%*s", (depth < DEEP ? depth : DEEP) * INDENT, "");
    if (depth > DEEP) fprintf(out, "[%d] ", depth);
    char limit[40] = "";
    if (stats->limit) report_format(limit, sizeof limit, ", limit %zu", stats->limit);
    fprintf(out, "%s%s%p: %zu objects, %zu bytes, %zu chunks, %zu held, %zu at most%s\n", view->name,
            *view->name ? " " : "", view->handle, stats->live_objects, stats->live_bytes, stats->chunks,
            stats->chunk_bytes, stats->peak_chunk_bytes, limit);
}

/* Prints the tree of top in preorder, newest children first, without recursion. */
static void print_tree(struct reap *top, FILE *out)
{
    struct view view;
    struct reap *reap = top;
    int depth = 0;
    while (look_at(reap, &view)) {
        print_view(&view, depth, out);
        if (view.children) {
            reap = view.children;
            depth++;
            continue;
        }
        while (reap != top && !view.next) {
            reap = view.parent;
            depth--;
            if (!look_at(reap, &view)) return;
        }
        if (reap == top) return;
        reap = view.next;
    }
}

/* Roots found by one walk over the chunks, from number `skip` on. */
struct roots {
    struct reap *reaps[BATCH];
    size_t count;
    size_t skip;
};

static int collect_root(void *memory, size_t size, void *arg)
{
    const struct reap_chunk *chunk = memory;
    struct roots *roots = arg;
    (void)size;
    if (!reap_chunk_is_live(chunk) || chunk != reap_first_chunk(chunk->owner) || chunk->owner->parent)
        return 0;
    if (roots->skip > 0) {
        roots->skip--;
        return 0;
    }
    roots->reaps[roots->count++] = chunk->owner;
    return roots->count == BATCH;
}

static void print_all(FILE *out)
{
    struct roots roots;
    size_t seen = 0;
    do {
        roots.count = 0;
        roots.skip = seen;
        chunk_freeze();
        chunk_walk(collect_root, &roots);
        chunk_thaw();
        for (size_t i = 0; i < roots.count; i++) print_tree(roots.reaps[i], out);
        seen += roots.count;
    } while (roots.count == BATCH);
}

/* A destructor lists the reaps: it runs after the functions that the program has registered with atexit. */
static bool left_at_exit;

__attribute__((destructor)) static void say_all_left(void)
{
    if (left_at_exit) print_all(NULL);
}

void reap_stats_start(void)
{
    if (!options.leaks) return;
    report_keep_stderr();
    left_at_exit = true;
}

void reapReport(void **handle, FILE *out)
{
    REAP_NOT_NULL(out, "reapReport");
    if (!handle) {
        print_all(out);
        return;
    }
    HELD struct reap *reap = reap_hold(handle, "reapReport");
    int state; /* printing is a cancellation point, and a shared reap is held */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    print_tree(reap, out);
    pthread_setcancelstate(state, NULL);
}
