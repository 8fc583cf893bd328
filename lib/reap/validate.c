/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c: checks a reap's invariants. */
#include "reap/validate.h"

#include "base/report.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"
#include "region/reap_free.h"

/* The sums that the walks add up. */
struct sums {
    size_t held;
    size_t spare_bytes;
    size_t free_blocks;
    size_t to_sweep;
    size_t draining;
    const char *wrong; /* the first equation that does not hold */
};

/* Notes an equation that does not hold. Its text is the message, so that a failing test names it. */
#define HOLDS(sums, equation)                                                                                \
    do                                                                                                       \
        if (!(equation) && !(sums)->wrong) (sums)->wrong = #equation;                                        \
    while (0)

static void check_blocks(const struct reap *reap, const struct reap_chunk *chunk, struct sums *sums)
{
    size_t top = reap_chunk_top(reap, chunk), end, units = chunk->size / REAP_UNIT, free_units = 0;
    bool last_is_free = false;
    HOLDS(sums, bitmap_next(chunk->starts, 0, units + 64) >= chunk->first);
    HOLDS(sums, bitmap_next(chunk->starts, top, units + 64) == units + 64);
    HOLDS(sums, top == chunk->first || bitmap_get(chunk->starts, chunk->first));
    if (sums->wrong) return;
    for (size_t unit = chunk->first; unit < top; unit = end) {
        end = reap_block_end(reap, chunk, unit);
        last_is_free = reap_is_free(chunk, unit);
        if (!last_is_free) continue;
        free_units += end - unit;
        sums->free_blocks += !chunk->draining;
    }
    for (size_t unit = 0; chunk->frees && (unit = bitmap_next(chunk->frees, unit, units)) < units; unit++)
        HOLDS(sums, unit < top && bitmap_get(chunk->starts, unit));
    HOLDS(sums, reap_chunk_live(chunk) == chunk->end_unit - chunk->first - free_units);
    HOLDS(sums, chunk != reap->current || !last_is_free || top == reap_chunk_floor(chunk));
    HOLDS(sums, reap_chunk_floor(chunk) >= chunk->first && reap_chunk_floor(chunk) <= top);
    HOLDS(sums, reap_chunk_live(chunk) > 0 || chunk == reap->current || chunk->pinned ||
                    chunk == reap_first_chunk(reap));
}

static void check_chunk(const struct reap *reap, const struct reap_chunk *chunk, struct sums *sums)
{
    HOLDS(sums, reap_chunk_is_live(chunk));
    HOLDS(sums, chunk->owner == reap);
    HOLDS(sums, chunk->shared == reap_is_part(reap));
    HOLDS(sums, chunk->kind == REAP_REGULAR || chunk->kind == REAP_WHOLE);
    HOLDS(sums, chunk->first <= chunk->end_unit);
    HOLDS(sums, chunk->end_unit - (reap_chunk_is_apart(chunk) ? chunk->first : 0) <= chunk->size / REAP_UNIT);
    sums->held += chunk->size;
    if (sums->wrong || chunk->kind == REAP_WHOLE) return;
    sums->to_sweep += reap_chunk_is_to_sweep(chunk);
    sums->draining += chunk->draining;
    HOLDS(sums, !chunk->draining || (!reap_chunk_is_to_sweep(chunk) && chunk != reap->current));
    HOLDS(sums, chunk->frees || !reap_chunk_is_to_sweep(chunk));
    HOLDS(sums, chunk->fast_free_end == (chunk->frees ? chunk->size / REAP_UNIT : 0));
    check_blocks(reap, chunk, sums);
}

static void check_chunks(const struct reap *reap, struct sums *sums)
{
    const struct reap_chunk *prev = NULL;
    for (const struct reap_chunk *chunk = reap->chunks; chunk && !sums->wrong; chunk = chunk->next) {
        HOLDS(sums, chunk->prev == prev);
        HOLDS(sums, chunk->depth <= (prev ? prev->depth : reap_depth(reap)));
        check_chunk(reap, chunk, sums);
        prev = chunk;
    }
    check_chunk(reap, reap_first_chunk(reap), sums);
    for (const struct reap_chunk *chunk = reap_spares(reap); chunk && !sums->wrong; chunk = chunk->next) {
        HOLDS(sums, chunk->kind == REAP_SPARE);
        sums->spare_bytes += chunk->size;
    }
    size_t to_sweep = 0;
    for (const struct list_node *node = reap->to_sweep.first; node; node = node->next) to_sweep++;
    HOLDS(sums, to_sweep == sums->to_sweep);
    HOLDS(sums, reap->draining == sums->draining);
    HOLDS(sums, reap->spare_bytes == sums->spare_bytes);
    HOLDS(sums, reap->held == sums->held + sums->spare_bytes + reap_wide_size(reap));
    HOLDS(sums, reap->peak >= reap->held);
}

static struct reap_block **lists_of(const struct reap *reap)
{
    return reap_tables_of((struct reap *)(uintptr_t)reap)->freelists;
}

static void check_freelist(const struct reap *reap, size_t list, struct sums *sums)
{
    const struct reap_block *prev = NULL;
    for (struct reap_block *block = lists_of(reap)[list]; block && !sums->wrong; block = block->next) {
        struct reap_chunk *chunk = chunk_of(block, NULL);
        HOLDS(sums, chunk && reap_chunk_is_live(chunk) && chunk->owner == reap);
        HOLDS(sums, sums->wrong || (chunk->frees && !chunk->draining));
        if (sums->wrong) return;
        size_t unit = reap_unit(chunk, block), units = reap_block_end(reap, chunk, unit) - unit;
        HOLDS(sums, bitmap_get(chunk->frees, unit));
        HOLDS(sums, reap_freelist(units) == list);
        HOLDS(sums, units <= REAP_EXACT_LISTS || block->units == units);
        HOLDS(sums, !prev || block->prev == prev);
        HOLDS(sums, sums->free_blocks-- > 0);
        prev = block;
    }
}

static void check_cache(const struct reap *reap, struct sums *sums)
{
    if (reap->tables == &reap_no_tables) return;
    HOLDS(sums, reap->tables->freelists == lists_of(reap));
    for (size_t i = 0; !sums->wrong && i <= reap->tables->cache_last; i++) {
        const struct reap_chunk *chunk =
            *reap_cached_chunk(reap->tables, (void *)(i << REAP_CHUNK_CACHE_SHIFT));
        HOLDS(sums, chunk->size == 0 || (chunk_of(chunk, NULL) == chunk && reap_chunk_is_live(chunk)));
        HOLDS(sums, sums->wrong || chunk->size == 0 || (chunk->owner == reap && chunk->kind == REAP_REGULAR));
    }
}

static void check_freelists(const struct reap *reap, struct sums *sums)
{
    for (size_t list = 0; list < REAP_FREELISTS && !sums->wrong; list++) {
        if (!(reap->freelists_used >> list & 1)) continue;
        HOLDS(sums, lists_of(reap)[list]);
        check_freelist(reap, list, sums);
    }
    HOLDS(sums, sums->free_blocks == 0);
}

static void check_hole(const struct reap *reap, struct sums *sums)
{
    const struct reap_chunk *chunk = reap->current;
    bool limited = reap->flags & REAP_LIMITED;
    HOLDS(sums, reap->end == reap->bump || reap->end == reap->bump_max || limited);
    HOLDS(sums, reap->end == reap->bump_max || reap->freelists_used || reap_instrumented || limited);
    if (!chunk) {
        HOLDS(sums, !reap->bump && !reap->bump_max);
        return;
    }
    HOLDS(sums, reap->bump_max == (char *)reap_address(chunk, chunk->end_unit));
    HOLDS(sums, reap->bump <= reap->end && reap->end <= reap->bump_max);
    HOLDS(sums, reap->bump >= (char *)reap_address(chunk, chunk->first));
    HOLDS(sums, (uintptr_t)reap->bump % REAP_UNIT == 0);
}

static void check_children(const struct reap *reap, struct sums *sums)
{
    const struct reap_chunk *cached_child = reap->cached_child;
    HOLDS(sums, !cached_child || (chunk_of(cached_child, NULL) == cached_child && cached_child->tag == 0));
    const struct reap *prev = NULL;
    for (const struct reap *child = reap->children; child && !sums->wrong;
         prev = child, child = child->next) {
        HOLDS(sums, child->tag == reap_tag(child) || reap_is_shared(child));
        HOLDS(sums, child->parent == reap);
        HOLDS(sums, child->born <= (prev ? prev->born : reap_depth(reap)));
        HOLDS(sums, !prev || child->prev == prev);
    }
}

/* As reap_tree_after, with the hidden children of shared reaps. */
static const struct reap *after(const struct reap *top, const struct reap *reap)
{
    const struct reap *part = reap_next_part(reap);
    return part ? part : reap_tree_after(top, reap_known(reap));
}

/* Checks the accounts of a limiter against all reaps of its tree, itself included. */
static void check_accounts(const struct reap *top, struct sums *sums)
{
    size_t drawn = 0, extra = 0;
    for (const struct reap *reap = top; reap; reap = after(top, reap)) {
        const struct reap *limiter = reap->flags & REAP_LIMITED ? reap->share.limiter : NULL;
        while (limiter && limiter != top) limiter = limiter->share.above;
        HOLDS(sums, limiter == top);
        if (sums->wrong) return;
        drawn += reap->share.drawn;
        extra += reap->share.extra;
    }
    HOLDS(sums, top->share.left + drawn == top->share.bytes / REAP_UNIT * REAP_UNIT);
    HOLDS(sums, top->share.slack + extra == top->share.bytes / 16 / REAP_UNIT * REAP_UNIT);
}

static void check_share(const struct reap *reap, struct sums *sums)
{
    const struct reap_share *share = &reap->share;
    size_t used = share->from ? (size_t)(reap->bump - share->from) : 0;
    HOLDS(sums, share->limiter && share->limiter->share.bytes);
    HOLDS(sums, used <= share->room && share->room <= share->extra);
    HOLDS(sums, share->drawn == reap_chunk_live_bytes(reap) + share->room - used);
    HOLDS(sums, (size_t)(reap->end - reap->bump) <= share->room - used);
    const struct reap *parent = reap->parent;
    const struct reap *above = parent && parent->flags & REAP_LIMITED ? parent->share.limiter : NULL;
    HOLDS(sums, (share->limiter == reap) == (share->bytes > 0));
    HOLDS(sums, (share->limiter == reap ? share->above : share->limiter) == above);
    if (share->bytes && !sums->wrong) check_accounts(reap, sums);
}

static void check_face(const struct reap *reap, struct sums *sums)
{
    const struct reap_face *face = reap_face(reap);
    HOLDS(sums, face->self == face && face->reap == reap);
    HOLDS(sums, reap->part == &face->part && face->part.reap == reap && list_holds(&face->node));
    HOLDS(sums, !face->bump && !face->end && !face->freelists_used);
    HOLDS(sums, face->owner != &lock_depth || face->depth > 0);
    HOLDS(sums,
          (char *)face >= (char *)reap_address(reap_first_chunk(reap), reap_first_chunk(reap)->end_unit));
}

static void check_hidden(const struct reap *reap, struct sums *sums)
{
    const struct reap_face *face = reap_face(reap);
    HOLDS(sums, reap->self == reap && reap->part->reap == reap && reap->tag == reap_hidden_tag(reap));
    HOLDS(sums, reap->parent == face->reap && !reap->children && !reap->cleanups);
    HOLDS(sums, !(reap->flags & REAP_MARKED) && !face->alone);
    HOLDS(sums, (reap->flags & REAP_LIMITED) == (face->reap->flags & REAP_LIMITED));
}

/* Of the parts of a shared reap that no other thread uses. A fork by another thread may be in one. */
static void check_holder(const struct reap_part *part, struct sums *sums)
{
    const struct reap_face *face = part->face;
    uint64_t holder = part->holder;
    HOLDS(sums, holder == (face->taken || face->alone ? PART_TAKEN : 0) || holder == PART_FORKS);
    bool closed = part != &face->part && face->reap->flags & REAP_MARKED;
    HOLDS(sums, face->taken || part->closed == closed);
}

static void check_reap(const struct reap *reap, struct sums *sums)
{
    if (reap_is_shared(reap)) check_face(reap, sums);
    if (!sums->wrong) check_hole(reap, sums);
    if (!sums->wrong) check_chunks(reap, sums);
    if (!sums->wrong) check_freelists(reap, sums);
    if (!sums->wrong) check_cache(reap, sums);
}

bool reap_is_valid(const struct reap *reap, const char **why)
{
    struct sums sums = {0};
    HOLDS(&sums, reap->self == reap);
    HOLDS(&sums, reap->tag == reap_tag(reap) || reap_is_shared(reap));
    const struct reap *part = sums.wrong ? NULL : reap;
    for (; part && !sums.wrong; part = reap_next_part(part)) {
        struct sums of_part = {0};
        check_reap(part, &of_part);
        if (!of_part.wrong && reap_is_shared(reap)) check_holder(part->part, &of_part);
        if (!of_part.wrong && part != reap) check_hidden(part, &of_part);
        if (!of_part.wrong && part->flags & REAP_LIMITED) check_share(part, &of_part);
        sums.wrong = of_part.wrong;
    }
    if (!sums.wrong) check_children(reap, &sums);
    HOLDS(&sums, reap->flags & REAP_LIMITED || !reap->parent || !(reap->parent->flags & REAP_LIMITED));
    if (why) *why = sums.wrong;
    return !sums.wrong;
}

#ifdef REAP_DEBUG

bool reap_is_sound(const struct reap *reap)
{
    struct sums sums = {0};
    check_reap(reap, &sums);
    if (!sums.wrong && __libc_single_threaded) check_children(reap, &sums);
    bool is_limiter = reap->flags & REAP_LIMITED && reap->share.bytes > 0;
    if (!sums.wrong && reap->flags & REAP_LIMITED && !is_limiter) check_share(reap, &sums);
    if (sums.wrong) report_line("of the reap %p does not hold: %s", (const void *)reap, sums.wrong);
    return !sums.wrong;
}

#endif
