/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c: checks a reap's invariants. */
#include "reap/validate.h"

#include "base/report.h"
#include "reap/reap_parts.h"
#include "reap/reap_tree.h"
#include "region/reap_free.h"

struct sums {
    size_t held;
    size_t carved;
    size_t spare_bytes;
    size_t with_lives;
    const char *wrong; /* the first equation that does not hold */
};

/* Notes an equation that does not hold. Its text is the message, so that a failing test names it. */
#define HOLDS(sums, equation)                                                                                \
    do                                                                                                       \
        if (!(equation) && !(sums)->wrong) (sums)->wrong = #equation;                                        \
    while (0)

static void check_dead(const struct reap *reap, const struct reap_chunk *chunk, size_t top, struct sums *sums)
{
    size_t dead = 0;
    HOLDS(sums, !chunk->dead || (chunk == reap->current && chunk->is_mapped && !reap->heap));
    for (size_t unit = chunk->first; chunk->dead != 0 && unit < top; unit = reap_block_end(chunk, unit))
        if (reap_dead_at(chunk, unit)) dead += reap_block_end(chunk, unit) - unit;
    HOLDS(sums, dead == chunk->dead);
}

static void check_bits(const struct reap *reap, const struct reap_chunk *chunk, struct sums *sums)
{
    size_t begin = (uintptr_t)chunk / REAP_UNIT, end = begin + chunk->size / REAP_UNIT, live = 0;
    HOLDS(sums, bitmap_next(chunk->starts, begin, end) == chunk->first);
    HOLDS(sums, bitmap_next(chunk->starts, chunk->end_unit, end) == chunk->end_unit);
    HOLDS(sums, bitmap_next(chunk->starts, chunk->end_unit + 1, end) == end);
    if (!chunk->lives) {
        size_t top = reap_chunk_top(chunk);
        HOLDS(sums, top >= chunk->first && top <= chunk->end_unit && bitmap_get(chunk->starts, top));
        HOLDS(sums, sums->wrong || reap_block_end(chunk, top) == chunk->end_unit || top == chunk->end_unit);
        if (!sums->wrong) check_dead(reap, chunk, top, sums);
        return;
    }
    for (size_t unit = begin; (unit = bitmap_next(chunk->lives, unit, end)) < end; unit++, live++)
        HOLDS(sums, bitmap_get(chunk->starts, unit) && unit < chunk->end_unit);
    if (chunk->state != REAP_CHUNK_QUIET || chunk == reap->current) return;
    bool stays = chunk == reap_first_chunk(reap) || chunk->has_records || reap->flags & REAP_MARKED;
    HOLDS(sums, live > 0 || stays);
}

static void check_chunk(const struct reap *reap, const struct reap_chunk *chunk, struct sums *sums)
{
    HOLDS(sums, reap_chunk_is_live(chunk));
    HOLDS(sums, chunk->owner == reap);
    HOLDS(sums, chunk->shared == reap_is_part(reap));
    HOLDS(sums, chunk->kind == REAP_REGULAR || chunk->kind == REAP_WHOLE);
    HOLDS(sums, chunk->first <= chunk->end_unit);
    bool ends_within =
        reap_chunk_is_apart(chunk) || chunk->end_unit * REAP_UNIT <= (uintptr_t)chunk + chunk->size;
    HOLDS(sums, ends_within);
    sums->held += chunk->size;
    if (sums->wrong || chunk->kind == REAP_WHOLE) return;
    sums->carved += chunk->size;
    sums->with_lives += chunk->lives != NULL;
    HOLDS(sums, (chunk->lives != NULL) == (chunk->state != REAP_CHUNK_REGION));
    HOLDS(sums, !chunk->lives || list_holds(&chunk->node) == (reap->own != NULL));
    HOLDS(sums, chunk->state == REAP_CHUNK_REGION || reap->heap);
    bool is_swept = reap->heap && reap->own && reap->own->swept == chunk;
    HOLDS(sums, chunk->state == REAP_CHUNK_SWEPT ? is_swept : !is_swept || chunk->state == REAP_CHUNK_QUIET);
    HOLDS(sums, chunk->is_mapped || reap->flags & REAP_UNMAPPED);
    if (chunk->is_mapped) {
        uint32_t entry = *chunk_map_entry(chunk);
        bool is_listed = chunk->state == REAP_CHUNK_LISTED && reap->tables != &reap_no_tables;
        HOLDS(sums, entry == (uint32_t)(is_listed      ? (uintptr_t)reap
                                        : chunk->lives ? (uintptr_t)chunk + 1
                                                       : 0));
    }
    if (!sums->wrong) check_bits(reap, chunk, sums);
}

static size_t count_listed(const struct list *list, struct sums *sums, int state, int or)
{
    size_t n = 0;
    for (const struct list_node *node = list->first; node; node = node->next, n++) {
        int is = LIST_ENTRY(node, const struct reap_chunk, node)->state;
        HOLDS(sums, is == state || is == or);
    }
    return n;
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
    const struct reap_tables *tables = reap->heap ? reap->own : NULL;
    size_t on_lists = 0;
    if (tables) {
        on_lists += count_listed(&tables->listed, sums, REAP_CHUNK_LISTED, REAP_CHUNK_SWEPT);
        on_lists += count_listed(&tables->quiet, sums, REAP_CHUNK_QUIET, REAP_CHUNK_QUIET);
        on_lists += count_listed(&tables->done, sums, REAP_CHUNK_QUIET, REAP_CHUNK_QUIET);
        on_lists += count_listed(&tables->emptied, sums, REAP_CHUNK_QUIET, REAP_CHUNK_QUIET);
        HOLDS(sums, reap->flags & REAP_MARKED ? !tables->listed.first : !tables->emptied.first);
    }
    HOLDS(sums, !tables || on_lists == sums->with_lives);
    HOLDS(sums, reap->carved == sums->carved);
    HOLDS(sums, reap->spare_bytes == sums->spare_bytes);
    size_t apart = reap_tables_are_apart(reap) ? sizeof(struct reap_tables) : 0;
    HOLDS(sums, reap->held == sums->held + sums->spare_bytes + apart);
    HOLDS(sums, reap->peak >= reap->held);
}

static size_t check_freelist(const struct reap *reap, size_t list, struct sums *sums)
{
    size_t sum = 0;
    for (struct reap_block *block = reap->own->freelists[list]; block && !sums->wrong; block = block->next) {
        const struct reap_chunk *chunk = reap_chunk_find(reap, block);
        size_t unit = reap_unit(block);
        HOLDS(sums, chunk && (chunk->state == REAP_CHUNK_LISTED || chunk->state == REAP_CHUNK_SWEPT));
        HOLDS(sums, sums->wrong || (bitmap_get(chunk->starts, unit) && !bitmap_get(chunk->lives, unit)));
        HOLDS(sums, sums->wrong || chunk->state == REAP_CHUNK_LISTED || unit < chunk->top);
        if (sums->wrong) return 0;
        size_t units = reap_block_end(chunk, unit) - unit;
        HOLDS(sums, reap_free_list(units) == list);
        HOLDS(sums, units <= REAP_EXACT_LISTS || block->units == units);
        HOLDS(sums, (sum += units) <= reap->carved / REAP_UNIT); /* a list that is a ring */
    }
    return sum;
}

static void check_freelists(const struct reap *reap, struct sums *sums)
{
    size_t sum = 0;
    HOLDS(sums, reap->tables == (reap_may_show_tables(reap) ? reap->own : &reap_no_tables));
    for (size_t list = 0; reap->heap && reap->own && list < REAP_FREELISTS && !sums->wrong; list++)
        sum += check_freelist(reap, list, sums);
    HOLDS(sums,
          !reap->heap || !reap->own || sum == reap->own->budget.allowed - (size_t)reap->own->budget.room);
}

static void check_hole(const struct reap *reap, struct sums *sums)
{
    const struct reap_chunk *chunk = reap->current;
    bool limited = reap->flags & REAP_LIMITED;
    HOLDS(sums, limited || reap->end == reap->bump || !reap->heap);
    if (!chunk) {
        HOLDS(sums, !reap->bump && !reap->end && !reap->bump_max);
        return;
    }
    HOLDS(sums, reap->bump <= reap->end && reap->end <= reap->bump_max);
    HOLDS(sums, (uintptr_t)reap->bump % REAP_UNIT == 0 && (uintptr_t)reap->bump_max % REAP_UNIT == 0);
    size_t from = reap_unit(reap->bump), end = reap_unit(reap->bump_max);
    HOLDS(sums, from >= chunk->first && end <= chunk->end_unit);
    HOLDS(sums, sums->wrong || (bitmap_get(chunk->starts, from) && bitmap_get(chunk->starts, end)));
    HOLDS(sums, sums->wrong || from == end || reap_block_end(chunk, from) == end);
    HOLDS(sums, !chunk->lives || !bitmap_get(chunk->lives, from) || from == end);
    HOLDS(sums, reap->heap || end == chunk->end_unit);
}

static void check_children(const struct reap *reap, struct sums *sums)
{
    const struct reap_chunk *cached = reap->below.cached ? reap_first_chunk(reap->below.cached) : NULL;
    HOLDS(sums, !cached || (chunk_of(cached, NULL) == cached && cached->tag == 0));
    const struct reap *prev = NULL;
    for (const struct reap *child = reap->below.first; child && !sums->wrong;
         prev = child, child = child->next) {
        HOLDS(sums, child->tag == reap_tag(child) || reap_is_shared(child));
        HOLDS(sums, child->parent == reap);
        HOLDS(sums, child->born <= (prev ? prev->born : reap_depth(reap)));
        HOLDS(sums, !prev || child->prev == prev);
    }
}

/* Checks the accounts of a limiter against all reaps of its tree, itself included. */
static void check_accounts(const struct reap *top, struct sums *sums)
{
    size_t drawn = 0, extra = 0;
    for (const struct reap *reap = top; reap; reap = reap_part_after(top, reap)) {
        const struct reap *limiter = reap->flags & REAP_LIMITED ? reap_share(reap)->limiter : NULL;
        while (limiter && limiter != top) limiter = reap_share(limiter)->above;
        HOLDS(sums, limiter == top);
        if (sums->wrong) return;
        drawn += reap_share(reap)->drawn - (size_t)(reap_share(reap)->pending >> 32) * REAP_UNIT;
        extra += reap_share(reap)->extra;
    }
    HOLDS(sums, reap_share(top)->left + drawn == reap_share(top)->bytes / REAP_UNIT * REAP_UNIT);
    HOLDS(sums, reap_share(top)->slack + extra == reap_share(top)->bytes / 16 / REAP_UNIT * REAP_UNIT);
}

static void check_share(const struct reap *reap, struct sums *sums)
{
    const struct reap_share *share = reap_share(reap);
    size_t used = share->from ? (size_t)(reap->bump - share->from) : 0;
    HOLDS(sums, share->limiter && reap_share(share->limiter)->bytes);
    HOLDS(sums, used <= share->room && share->room <= share->extra);
    uint64_t pending = share->pending;
    HOLDS(sums, ((pending >> 32) + (uint32_t)pending) * REAP_UNIT <= reap_chunk_live_bytes(reap));
    HOLDS(sums, share->drawn == reap_chunk_live_bytes(reap) + share->room - used);
    HOLDS(sums, (size_t)(reap->end - reap->bump) <= share->room - used);
    const struct reap *parent = reap->parent;
    const struct reap *above = parent && parent->flags & REAP_LIMITED ? reap_share(parent)->limiter : NULL;
    HOLDS(sums, (share->limiter == reap) == (share->bytes > 0));
    HOLDS(sums, (share->limiter == reap ? share->above : share->limiter) == above);
    if (share->bytes && !sums->wrong) check_accounts(reap, sums);
}

static void check_face(const struct reap *reap, struct sums *sums)
{
    const struct reap_face *face = reap_face(reap);
    HOLDS(sums, face->self == face && face->reap == reap);
    HOLDS(sums, reap_own_part(reap) == &face->part && face->part.reap == reap && list_holds(&face->node));
    HOLDS(sums, !face->bump && !face->end);
    HOLDS(sums, face->owner != &lock_depth || face->depth > 0);
    HOLDS(sums, (char *)face >= (char *)reap_address(reap_first_chunk(reap)->end_unit));
}

static void check_hidden(const struct reap *reap, struct sums *sums)
{
    const struct reap_face *face = reap_face(reap);
    HOLDS(sums, reap->self == reap && reap->tag == reap_hidden_tag(reap));
    HOLDS(sums, sums->wrong || reap_own_part(reap)->reap == reap);
    HOLDS(sums, reap->parent == face->reap && !reap->below.first && !reap->cleanups);
    HOLDS(sums, !(reap->flags & REAP_MARKED) && !face->alone);
    HOLDS(sums, (reap->flags & REAP_LIMITED) == (face->reap->flags & REAP_LIMITED));
}

/* Of the parts of a shared reap that no other thread uses. A fork by another thread may be in one. */
static void check_holder(const struct reap_part *part, struct sums *sums)
{
    const struct reap_face *face = part->face;
    uint64_t holder = part->holder;
    HOLDS(sums, holder == (face->taken || face->alone ? PART_TAKEN : 0) || holder == PART_FORKS);
    bool is_barred = part != &face->part && face->reap->flags & REAP_MARKED;
    HOLDS(sums, face->taken || part->barred == is_barred);
}

static void check_reap(const struct reap *reap, struct sums *sums)
{
    if (reap_is_shared(reap)) check_face(reap, sums);
    if (!sums->wrong) check_hole(reap, sums);
    if (!sums->wrong) check_chunks(reap, sums);
    if (!sums->wrong) check_freelists(reap, sums);
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
        if (!of_part.wrong && reap_is_shared(reap)) check_holder(reap_own_part(part), &of_part);
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
    bool is_limiter = reap->flags & REAP_LIMITED && reap_share(reap)->bytes > 0;
    if (!sums.wrong && reap->flags & REAP_LIMITED && !is_limiter) check_share(reap, &sums);
    if (sums.wrong) report_line("of the reap %p does not hold: %s", (const void *)reap, sums.wrong);
    return !sums.wrong;
}

#endif
