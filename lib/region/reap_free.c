/* SPDX-License-Identifier: Apache-2.0 */
/* reap_free.c: heap mode: freeing, and allocation from what was freed. */
#include "region/reap_free.h"

#include <errno.h>
#include <string.h>

#include "hoard.h"

enum {
    TRIES = 8,               /* gaps to look at in a list whose gaps may be too small */
    SMALL_REAP = 128 * 1024, /* bytes carved; such a reap is flushed earlier, and takes any gap */
};

/* --- lists ----------------------------------------------------------------------------------- */

static void push_gap(struct reap *reap, size_t unit, size_t units)
{
    struct reap_block *block = reap_address(unit), **list = &reap->own->freelists[reap_free_list(units)];
    if (units > REAP_EXACT_LISTS) block->units = units;
    block->next = *list;
    *list = block;
    reap->own->budget.room -= (ptrdiff_t)units;
}

/* Takes the gap that a link points to off its list. */
static struct reap_block *pull_gap(struct reap *reap, struct reap_block **link, size_t list)
{
    struct reap_block *block = *link;
    *link = block->next;
    reap->own->budget.room += (ptrdiff_t)(list <= REAP_EXACT_LISTS ? list : block->units);
    return block;
}

static size_t hole(const struct reap *reap) { return (size_t)(reap->bump_max - reap->bump) / REAP_UNIT; }

/* --- states of a chunk ----------------------------------------------------------------------- */

/* From now on a free lists its gap in this chunk; by a fast path, if the reap has any. */
static void list_gaps_of(const struct reap *reap, struct reap_chunk *chunk)
{
    chunk->state = REAP_CHUNK_LISTED;
    if (LIKELY(reap->tables != &reap_no_tables))
        entry_set_reap(chunk, reap);
    else
        entry_set_chunk(chunk);
}

/* Returns true if gaps are used again: not while a mark is open, and not without tables. */
static bool uses_gaps(const struct reap *reap)
{
    return reap->heap && reap->own && !(reap->flags & REAP_MARKED);
}

/* Returns true if no object lives in a chunk with live bits. */
static bool is_empty(const struct reap_chunk *chunk)
{
    size_t i = chunk->first / 64, end = chunk->end_unit / 64;
    while (chunk->lives[i] == 0)
        if (i++ == end) return true;
    return false;
}

/* Returns true if a chunk goes back when it has no live object. */
static bool may_be_given_back(const struct reap *reap, const struct reap_chunk *chunk)
{
    return chunk != reap_first_chunk(reap) && !chunk->has_records;
}

/* Does so with a chunk that is on no list. */
static void begin_listed(struct reap *reap, struct reap_chunk *chunk)
{
    list_gaps_of(reap, chunk);
    chunk->node = (struct list_node){NULL, NULL};
    list_push(&reap->own->listed, &chunk->node);
}

/* --- when a flush comes ---------------------------------------------------------------------- */

/* Half of a reap may be unused: on lists, or the hole. From then on a *look* tells whether a flush is due:
 * when frees have put half of the reap onto the lists, or when an eighth of it lies in chunks without live
 * objects. If neither, the next look comes when half of what lives in listed chunks was freed. So looks cost
 * a free constant time, and one comes before nothing lives there any more. What sweeps list brings the first
 * look nearer, and not the next ones. */

static size_t units_listed(const struct reap *reap)
{
    return reap->own->budget.allowed - (size_t)reap->own->budget.room;
}

static size_t units_carved(const struct reap *reap) { return reap->carved / REAP_UNIT; }

/* Sets how much may be freed before the next look, while so many units are on lists. */
static void budget_set(struct reap *reap, size_t on_lists, size_t next)
{
    struct flush_budget *budget = &reap->own->budget;
    budget->hole = hole(reap);
    budget->allowed = on_lists + next;
    budget->room = (ptrdiff_t)next;
}

/* The next look comes so much earlier (or later), though lists are as they were. */
static void budget_lower(struct flush_budget *budget, ptrdiff_t units)
{
    budget->allowed -= (size_t)units;
    budget->room -= units;
}

/* Counts the units of listed chunks that a flush would give back, and what lives in the others. */
static size_t count_empty(const struct reap *reap, size_t *live)
{
    size_t empty = 0, chunks = 0;
    *live = 0;
    for (const struct list_node *node = reap->own->listed.first; node; node = node->next, chunks++) {
        const struct reap_chunk *chunk = LIST_ENTRY(node, const struct reap_chunk, node);
        size_t units = reap_chunk_units(chunk);
        if (units == 0 && may_be_given_back(reap, chunk)) empty += chunk->size / REAP_UNIT;
        *live += units;
    }
    *live += chunks / 4; /* for the time of the look */
    return empty;
}

static bool flush_is_due(struct reap *reap)
{
    struct flush_budget *budget = &reap->own->budget;
    size_t half = units_carved(reap) / 2, unused = units_listed(reap) + hole(reap),
           most = half + budget->found;
    size_t live, next;
    budget->is_sparse = unused > half;
    if (!budget->is_sparse) {
        next = half - unused;
    } else {
        if (units_listed(reap) > most || count_empty(reap, &live) >= half / 4) return true;
        next = live / 2 < most - units_listed(reap) ? live / 2 : most - units_listed(reap);
    }
    budget_set(reap, units_listed(reap), next);
    return false;
}

/* --- quiet chunks ---------------------------------------------------------------------------- */

/* Puts a quiet chunk onto the list where it belongs, if there are tables, or gives it back. */
static void file_quiet(struct reap *reap, struct reap_chunk *chunk)
{
    struct reap_tables *tables = reap->own;
    bool is_spent = chunk != reap->current && may_be_given_back(reap, chunk) && is_empty(chunk);
    if (is_spent && !(reap->flags & REAP_MARKED)) {
        if (tables) budget_lower(&tables->budget, (ptrdiff_t)(chunk->size / REAP_UNIT / 2));
        if (tables && tables->swept == chunk) tables->swept = NULL;
        reap_chunk_release(reap, chunk);
    } else if (LIKELY(tables != NULL)) {
        struct list *list = chunk->is_done ? &tables->done : &tables->quiet;
        list_push(is_spent ? &tables->emptied : list, &chunk->node);
    }
}

/* The same after a change, for one that may be on a list. */
static void refile_quiet(struct reap *reap, struct reap_chunk *chunk)
{
    if (list_holds(&chunk->node)) list_remove(&chunk->node);
    file_quiet(reap, chunk);
}

/* Makes a chunk with live bits quiet, or gives it back. */
static void calm(struct reap *reap, struct reap_chunk *chunk, bool is_done)
{
    ASSERT(chunk->lives && chunk->state != REAP_CHUNK_QUIET);
    entry_set_chunk(chunk);
    chunk->state = REAP_CHUNK_QUIET;
    chunk->node = (struct list_node){NULL, NULL};
    chunk->is_done = is_done;
    file_quiet(reap, chunk);
}

/* --- live bits and tables -------------------------------------------------------------------- */

/* Makes live bits of the dead bits of a chunk. Other threads look first whether there are dead bits. */
static void revive(struct reap_chunk *chunk, uint64_t *lives)
{
    const uint64_t *starts = chunk->starts + (uintptr_t)chunk / 1024;
    chunk->dead = 0;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (size_t i = 0, n = chunk->size / 1024; i < n; i++) lives[i] = starts[i] & ~lives[i];
}

/* Puts the dead blocks of a chunk that has got its live bits onto free lists, the newest one last. A sweep
 * finds those that their list does not name. */
static void list_dead(struct reap *reap, const struct reap_chunk *chunk, struct dead_blocks list, size_t top)
{
    size_t units[DEAD_FREES], n = 0;
    for (; n < DEAD_FREES && list.first != 0; n++) {
        units[n] = chunk->first + list.first - 1;
        if (units[n] >= top || !bitmap_get(chunk->starts, units[n]) || bitmap_get(chunk->lives, units[n]))
            break;
        list.first = dead_block_next(*(dead_block *)reap_address(units[n]));
    }
    while (n-- > 0) push_gap(reap, units[n], reap_block_end(chunk, units[n]) - units[n]);
}

/* Makes the live bits of a chunk in region state. Its dead blocks and its unused end become gaps. */
static NOINLINE void convert(struct reap *reap, struct reap_chunk *chunk)
{
    size_t top = reap_chunk_top(chunk), from = (uintptr_t)chunk / 1024, n = chunk->size / 1024;
    uint64_t *lives = reap_chunk_lives(chunk);
    struct dead_blocks dead = {0, 0, 0};
    ASSERT(reap->heap && !chunk->lives && chunk->owner == reap);
    if (chunk->dead != 0) {
        dead = chunk->dead_list;
        revive(chunk, lives + from);
    } else {
        memcpy(lives + from, chunk->starts + from, n * sizeof *lives);
    }
    bitmap_clear_range(lives, top, (from + n) * 64);
    __atomic_store_n(&chunk->lives, lives, __ATOMIC_RELEASE); /* free() in other threads looks at it */
    if (UNLIKELY(!uses_gaps(reap))) {
        calm(reap, chunk, false);
        return;
    }
    begin_listed(reap, chunk);
    list_dead(reap, chunk, dead, top);
    if (chunk != reap->current && top < chunk->end_unit) push_gap(reap, top, chunk->end_unit - top);
}

/* Finds memory for the tables of a reap in heap mode: behind it in its first chunk, or apart if that is
 * small. Without it all chunks with live bits are quiet, on no list, until a later call finds some. */
static NOINLINE void make_tables(struct reap *reap)
{
    int saved = errno;
    bool is_small = reap_first_chunk(reap)->size == REAP_SMALL_SIZE;
    struct reap_tables *tables = is_small ? hoard_malloc(sizeof *tables) : &reap_records(reap)->tables;
    errno = saved;
    if (!tables) return;
    reap->own = tables;
    if (is_small) reap_chunk_hold_bytes(reap, sizeof *tables);
}

/* Clears the tables, if there are any, and lists the quiet chunks. */
static void begin_tables(struct reap *reap)
{
    if (UNLIKELY(!reap->own)) make_tables(reap);
    struct reap_tables *tables = reap->own;
    if (tables) {
        memset(tables, 0, sizeof *tables);
        tables->budget.gained = units_carved(reap); /* the first flush is paid */
    }
    for (struct reap_chunk *chunk = reap_chunk_begin(reap), *next; chunk; chunk = next) {
        next = reap_chunk_after(reap, chunk);
        if (chunk->kind == REAP_REGULAR && chunk->lives) file_quiet(reap, chunk);
    }
    if (!tables) return;
    budget_set(reap, 0, units_carved(reap) / 2);
    reap_show_tables(reap);
}

NOINLINE void reap_free_begin_heap(struct reap *reap)
{
    struct reap_chunk *chunk = reap->current;
    reap->heap = true;
    begin_tables(reap);
    if (chunk) convert(reap, chunk);
    reap->end = reap->bump;
}

/* --- the hole -------------------------------------------------------------------------------- */

static void *bump(struct reap *reap, size_t units)
{
    ASSERT(reap->current && units != 0 && units <= hole(reap));
    void *object = reap_bump_over(reap, units * REAP_UNIT);
    if (reap->current->lives) bitmap_set(reap->current->lives, reap_unit(object));
    reap_choose_mode(reap);
    return object;
}

static void begin_hole(struct reap *reap, struct reap_chunk *chunk, size_t from, size_t end)
{
    reap_chunk_bump_in(reap, chunk, from, end);
    if (!uses_gaps(reap)) return;
    reap->own->budget.hole = end - from;
    reap->own->budget.gained += end - from;
}

void reap_free_leave_hole(struct reap *reap)
{
    struct reap_chunk *chunk = reap->current;
    if (!chunk) return;
    size_t unit = reap_unit(reap->bump), units = hole(reap);
    ASSERT(chunk->dead == 0);
    if (chunk->state == REAP_CHUNK_REGION)
        chunk->top = unit; /* before: other threads may look at its objects */
    reap_chunk_bump_nowhere(reap);
    if (chunk->state == REAP_CHUNK_LISTED || chunk->state == REAP_CHUNK_SWEPT) {
        if (units > 0) push_gap(reap, unit, units);
    } else if (chunk->state == REAP_CHUNK_QUIET) {
        refile_quiet(reap, chunk);
    }
}

/* --- flush and sweep ------------------------------------------------------------------------- */

/* Drops the lists; what was listed becomes quiet, and done if a mark comes. */
static void drop_lists(struct reap *reap, bool is_done)
{
    struct reap_tables *tables = reap->own;
    size_t gained = is_done ? tables->budget.gained : 0;
    memset(tables, 0, offsetof(struct reap_tables, swept));
    for (struct list_node *node; (node = list_pop(&tables->listed)) != NULL;)
        calm(reap, LIST_ENTRY(node, struct reap_chunk, node), is_done);
    budget_set(reap, 0, units_carved(reap) / 2);
    tables->budget.gained = gained;
    tables->budget.is_blind = is_done;
}

NOINLINE void reap_free_flush(struct reap *reap)
{
    ASSERT(reap->heap && !(reap->flags & REAP_MARKED));
    struct reap_tables *tables = reap->own;
    if (UNLIKELY(!tables)) return;
    reap_free_leave_hole(reap);
    drop_lists(reap, false);
    tables->swept = NULL;
    for (struct list_node *node; (node = list_pop(&tables->done)) != NULL; list_push(&tables->quiet, node))
        LIST_ENTRY(node, struct reap_chunk, node)->is_done = false;
}

NOINLINE void reap_free_look(struct reap *reap)
{
    if (flush_is_due(reap)) reap_free_flush(reap);
}

/* Joins the gaps of a chunk: start bits stay only where an object or a gap starts. What lies before the first
 * object, and the last unit, count as objects. */
static void join_gaps(struct reap_chunk *chunk)
{
    size_t from = (uintptr_t)chunk / 1024, n = chunk->size / 1024;
    struct reap_carry carry = {0, 0};
    uint64_t before = 0;
    bitmap_set(chunk->starts, from * 64);
    for (size_t i = from; i < from + n; i++) {
        uint64_t live = chunk->lives[i];
        if (i == from) live |= 1;
        if (i == chunk->end_unit / 64) live |= (uint64_t)1 << chunk->end_unit % 64;
        uint64_t gap = ~reap_used_units(chunk->starts[i], live, &carry);
        chunk->starts[i] = live | (gap & ~(gap << 1 | before));
        before = gap >> 63;
    }
    bitmap_clear(chunk->starts, from * 64);
}

/* The next gap of a swept chunk from a unit on; its last unit if there is none. */
static size_t next_gap(const struct reap_chunk *chunk, size_t unit)
{
    size_t i = unit / 64;
    uint64_t gaps = chunk->starts[i] & ~chunk->lives[i] & ~(uint64_t)0 << unit % 64;
    while (!gaps) {
        i++;
        gaps = chunk->starts[i] & ~chunk->lives[i];
    }
    return i * 64 + (size_t)__builtin_ctzll(gaps);
}

/* Makes the next gap with so many units the hole. False: no quiet chunk has one. */
static bool sweep(struct reap *reap, size_t units)
{
    struct reap_tables *tables = reap->own;
    for (;;) {
        struct reap_chunk *chunk = tables->swept;
        if (!chunk) {
            if (list_is_empty(&tables->quiet)) return false;
            tables->swept = chunk = LIST_ENTRY(tables->quiet.first, struct reap_chunk, node);
            chunk->top = chunk->first;
            join_gaps(chunk);
        }
        if (chunk->state == REAP_CHUNK_QUIET) { /* or the sweep goes on after a mark */
            list_remove(&chunk->node);
            list_push(&tables->listed, &chunk->node);
            chunk->state = REAP_CHUNK_SWEPT;
        }
        bool is_over = chunk->top >= chunk->end_unit; /* a record may have taken the end */
        size_t unit = is_over ? chunk->end_unit : next_gap(chunk, chunk->top);
        if (unit == chunk->end_unit) {
            list_gaps_of(reap, chunk);
            tables->swept = NULL;
            continue;
        }
        size_t end = chunk->top = reap_block_end(chunk, unit);
        if (end - unit < units) {
            push_gap(reap, unit, end - unit);
            tables->budget.found += end - unit;
            if (tables->budget.is_sparse) budget_lower(&tables->budget, -(ptrdiff_t)(end - unit));
            continue;
        }
        begin_hole(reap, chunk, unit, end);
        return true;
    }
}

/* --- allocation ------------------------------------------------------------------------------ */

/* Makes an object of a gap's beginning. */
static void *cut(struct reap *reap, struct reap_block *block, size_t have, size_t units)
{
    size_t unit = reap_unit(block);
    struct reap_chunk *chunk = chunk_of(block, NULL);
    ASSERT(chunk && chunk->owner == reap && have >= units && !bitmap_get(chunk->lives, unit));
    if (have > units) {
        bitmap_set(chunk->starts, unit + units);
        push_gap(reap, unit + units, have - units);
    }
    bitmap_set(chunk->lives, unit);
    return block;
}

/* Takes the smallest gap in which an object fits, of at most this number of units, if that is a small one. */
static void *take_small(struct reap *reap, size_t units, size_t most)
{
    for (size_t list = units; list <= most && list <= REAP_EXACT_LISTS; list++) {
        struct reap_block **first = &reap->own->freelists[list];
        if (*first) return cut(reap, pull_gap(reap, first, list), list, units);
    }
    return NULL;
}

/* Pulls a gap in which an object fits off the lists of big ones. NULL: there is none. */
static struct reap_block *pull_big(struct reap *reap, size_t units)
{
    size_t list = units <= REAP_EXACT_LISTS ? REAP_EXACT_LISTS + 1 : reap_free_list(units);
    for (; list < REAP_FREELISTS; list++) {
        struct reap_block **link = &reap->own->freelists[list];
        for (int i = 0; *link && (i < TRIES || list == REAP_FREELISTS - 1); i++, link = &(*link)->next)
            if ((*link)->units >= units) return pull_gap(reap, link, list);
    }
    return NULL;
}

/* A small object takes the whole gap as the hole, which has room for the next ones. */
static void *take_big(struct reap *reap, size_t units)
{
    struct reap_block *block = pull_big(reap, units);
    if (!block) return NULL;
    if (units > REAP_EXACT_LISTS) return cut(reap, block, block->units, units);
    struct reap_chunk *chunk = chunk_of(block, NULL);
    size_t unit = reap_unit(block), end = unit + block->units;
    ASSERT(reap_block_end(chunk, unit) == end && !bitmap_get(chunk->lives, unit));
    reap_free_leave_hole(reap);
    begin_hole(reap, chunk, unit, end);
    return bump(reap, units);
}

/* Returns true if a flush may find an eighth (of a big reap a quarter): so much is listed, and was gained. */
static bool flush_pays(const struct reap *reap)
{
    size_t part = reap->carved <= SMALL_REAP ? 8 : 4, all = units_carved(reap);
    bool may_find = units_listed(reap) * part >= all || reap->own->budget.is_blind;
    return may_find && reap->own->budget.gained * 8 >= all;
}

/* Takes a new chunk, in heap mode with live bits. */
static struct reap_chunk *new_chunk(struct reap *reap, size_t units)
{
    struct reap_chunk *chunk = reap_chunk_new(reap, units);
    if (!chunk || !reap->heap) return chunk;
    if (UNLIKELY(!chunk->is_mapped && reap->tables != &reap_no_tables)) reap_hide_tables(reap);
    uint64_t *lives = reap_chunk_lives(chunk);
    memset(lives + (uintptr_t)chunk / 1024, 0, chunk->size / 1024 * sizeof *lives);
    chunk->lives = lives;
    if (UNLIKELY(!uses_gaps(reap))) {
        calm(reap, chunk, false);
        return chunk;
    }
    begin_listed(reap, chunk);
    return chunk;
}

static void move_hole(struct reap *reap, struct reap_chunk *chunk)
{
    reap_free_leave_hole(reap);
    begin_hole(reap, chunk, chunk->first, chunk->end_unit);
    reap_choose_mode(reap);
}

/* Begins heap mode if there are dead blocks: they are gaps then. */
static void end_dead(struct reap *reap)
{
    if (reap->current && reap->current->dead != 0) reap_free_begin_heap(reap);
}

bool reap_free_grow_hole(struct reap *reap, size_t units)
{
    end_dead(reap);
    struct reap_chunk *chunk = new_chunk(reap, units);
    if (chunk) move_hole(reap, chunk);
    return chunk != NULL;
}

/* Takes an object from a new chunk. In region mode the greater of the two holes becomes the reap's hole. */
static void *grow_by_chunk(struct reap *reap, size_t units)
{
    struct reap_chunk *chunk = new_chunk(reap, units);
    if (!chunk) return NULL;
    size_t first = chunk->first, rest = chunk->end_unit - first - units;
    if (reap->heap || rest >= hole(reap)) {
        move_hole(reap, chunk);
        return bump(reap, units);
    }
    chunk->top = first + units;
    bitmap_set(chunk->starts, chunk->top);
    return reap_address(first);
}

/* Returns true if it pays to join all gaps where the reap cannot grow: a 64th of it was freed since that
 * was in vain, or half of what lived. So in a full buffer each drop of an object costs a constant time. */
static bool join_pays(struct reap *reap)
{
    struct flush_budget *budget = &reap->own->budget;
    if (budget->found > units_listed(reap)) budget->found = units_listed(reap);
    size_t freed = units_listed(reap) - budget->found, all = units_carved(reap);
    return budget->is_blind || freed * 64 >= all || freed * 2 >= all - budget->found;
}

/* Takes a new chunk, and without memory for one joins all gaps. */
static void *grow_or_join(struct reap *reap, size_t units)
{
    int saved = errno;
    void *object = grow_by_chunk(reap, units);
    if (LIKELY(object != NULL)) return object;
    if (!join_pays(reap)) return NULL;
    reap_free_flush(reap);
    if (!sweep(reap, units)) return NULL;
    errno = saved;
    return bump(reap, units);
}

/* The sources of an object, in order. While a mark is open there are only the hole and new chunks. */
void *reap_free_take(struct reap *reap, size_t units)
{
    void *object;
    if (reap_dead_is_asked(reap) && (object = reap_dead_take(reap, units))) return object;
    if (!reap->heap && units > hole(reap)) end_dead(reap);
    if (UNLIKELY(reap->heap && !reap->own)) begin_tables(reap);
    bool from_gaps = uses_gaps(reap);
    if (from_gaps && (object = take_small(reap, units, units))) return object;
    bool may_fit = from_gaps && units > REAP_EXACT_LISTS && reap->own->freelists[reap_free_list(units)];
    if (units <= hole(reap) && !may_fit) return bump(reap, units);
    if (!from_gaps) return grow_by_chunk(reap, units);
    if ((object = take_big(reap, units))) return object;
    if (units <= hole(reap)) return bump(reap, units);
    reap_free_leave_hole(reap);
    do
        if (sweep(reap, units)) return bump(reap, units);
    while (flush_pays(reap) && (reap_free_flush(reap), true));
    if (reap->carved <= SMALL_REAP && (object = take_small(reap, units, REAP_EXACT_LISTS))) return object;
    return grow_or_join(reap, units);
}

bool reap_free_grow(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end, size_t extra)
{
    ASSERT(extra != 0 && chunk->kind == REAP_REGULAR && end <= chunk->end_unit);
    if (chunk != reap->current || end != reap_unit(reap->bump) || extra > hole(reap)) return false;
    if (!reap_free_may_bump_back(reap, reap_address(unit))) return false;
    reap->bump = reap_address(end + extra);
    reap_mark_start(reap, reap->bump);
    bitmap_clear(chunk->starts, end);
    reap_choose_mode(reap);
    return true;
}

/* --- freeing --------------------------------------------------------------------------------- */

/* After units of a chunk with live bits were freed that are on no list. */
static void note_unlisted(struct reap *reap, size_t units)
{
    if (!uses_gaps(reap)) return;
    budget_lower(&reap->own->budget, (ptrdiff_t)units);
    if (reap->own->budget.room < 0) reap_free_look(reap);
}

/* Frees [unit, end), which lies before the hole. False: it does not, or must not become part of it. */
static bool bump_back(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end)
{
    if (chunk != reap->current || end != reap_unit(reap->bump)) return false;
    if (!reap_free_may_bump_back(reap, reap_address(unit))) return false;
    if (end != reap_unit(reap->bump_max)) bitmap_clear(chunk->starts, end);
    if (end > chunk->high) chunk->high = end;
    reap->bump = reap_address(unit);
    reap_choose_mode(reap);
    if (UNLIKELY(chunk->dead != 0)) reap_dead_absorb(reap, chunk);
    if (chunk->lives) bitmap_clear(chunk->lives, unit);
    if (!chunk->lives || !uses_gaps(reap) || hole(reap) <= reap->own->budget.hole) return true;
    size_t more = hole(reap) - reap->own->budget.hole;
    reap->own->budget.hole += more;
    note_unlisted(reap, more);
    return true;
}

/* After a gap was made in a chunk with live bits. */
static void note_gap(struct reap *reap, const struct reap_chunk *chunk, size_t unit, size_t end)
{
    if (chunk->state == REAP_CHUNK_LISTED || reap_free_is_swept(chunk, unit)) {
        push_gap(reap, unit, end - unit);
        if (reap->own->budget.room < 0) reap_free_look(reap);
    } else if (chunk->state == REAP_CHUNK_SWEPT) {
        note_unlisted(reap, end - unit);
    }
}

/* Makes a dead block, in the current chunk in region mode. False: that must not be. */
static bool make_dead(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end)
{
    if (chunk != reap->current || !reap_dead_may_be_set(reap)) return false;
    reap_free_set_dead(reap, chunk, unit, end);
    return true;
}

/* Gives the chunk live bits, so that a gap can be made in it. */
static void prepare(struct reap *reap, struct reap_chunk *chunk)
{
    if (!reap->heap) reap_free_begin_heap(reap);
    if (!chunk->lives) convert(reap, chunk);
}

void reap_free_object(struct reap *reap, struct reap_chunk *chunk, size_t unit)
{
    size_t end = reap_block_end(chunk, unit);
    ASSERT(chunk->owner == reap && reap_is_live_at(chunk, unit) && bitmap_get(chunk->starts, unit));
    if (bump_back(reap, chunk, unit, end) || make_dead(reap, chunk, unit, end)) return;
    prepare(reap, chunk);
    bitmap_clear(chunk->lives, unit);
    if (chunk->state == REAP_CHUNK_QUIET)
        reap_free_quiet(reap, chunk, unit);
    else
        note_gap(reap, chunk, unit, end);
}

NOINLINE void reap_free_quiet(struct reap *reap, struct reap_chunk *chunk, size_t unit)
{
    if (chunk->lives[unit / 64] || chunk == reap->current || !is_empty(chunk) ||
        !may_be_given_back(reap, chunk))
        return;
    refile_quiet(reap, chunk);
    note_unlisted(reap, 0);
}

void reap_free_end(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end)
{
    ASSERT(chunk->owner == reap && unit < end && reap_block_end(chunk, unit) == end);
    bitmap_set(chunk->starts, unit);
    if (bump_back(reap, chunk, unit, end) || make_dead(reap, chunk, unit, end)) return;
    prepare(reap, chunk);
    bitmap_clear(chunk->lives, unit); /* made just now of a chunk in region state */
    note_gap(reap, chunk, unit, end);
}

void reap_free_begin(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t to)
{
    ASSERT(chunk->owner == reap && unit < to && reap_is_live_at(chunk, unit));
    bitmap_set(chunk->starts, to);
    if (make_dead(reap, chunk, unit, to)) return;
    prepare(reap, chunk);
    bitmap_set(chunk->lives, to);
    bitmap_clear(chunk->lives, unit);
    note_gap(reap, chunk, unit, to);
}

void reap_free_trim(struct reap *reap)
{
    if (reap->flags & REAP_MARKED) return;
    end_dead(reap);
    struct reap_chunk *chunk = reap->current;
    if (reap->heap) {
        reap_free_flush(reap);
        return;
    }
    if (!chunk || chunk->first != reap_unit(reap->bump) || !may_be_given_back(reap, chunk)) return;
    reap_chunk_bump_nowhere(reap);
    reap_chunk_release(reap, chunk);
}

/* --- marks, limits, other reaps -------------------------------------------------------------- */

void reap_free_mark(struct reap *reap)
{
    end_dead(reap);
    if (!reap->heap || reap->flags & REAP_MARKED) return;
    if (reap->own && !list_is_empty(&reap->own->listed)) drop_lists(reap, true);
    reap->tables = &reap_no_tables;
}

void reap_free_unmark(struct reap *reap)
{
    ASSERT(!(reap->flags & REAP_MARKED));
    if (!reap->heap) return;
    if (UNLIKELY(!reap->own)) begin_tables(reap);
    for (struct list_node *node; reap->own && (node = list_pop(&reap->own->emptied)) != NULL;)
        file_quiet(reap, LIST_ENTRY(node, struct reap_chunk, node));
    reap_show_tables(reap);
    if (reap->current && reap->current->state == REAP_CHUNK_REGION) convert(reap, reap->current);
}

void reap_free_wipe(struct reap_chunk *chunk, size_t from, size_t to)
{
    ASSERT(from >= chunk->first && from <= to && to <= chunk->end_unit && bitmap_get(chunk->starts, to));
    if (from == to) return;
    bitmap_clear_range(chunk->starts, from + 1, to);
    if (chunk->lives) bitmap_clear_range(chunk->lives, from, to);
}

static struct list_node *first_listed(const struct reap *reap)
{
    return reap->heap && reap->own ? reap->own->listed.first : NULL;
}

void reap_hide_tables(struct reap *reap)
{
    reap->tables = &reap_no_tables;
    for (struct list_node *node = first_listed(reap); node; node = node->next)
        entry_set_chunk(LIST_ENTRY(node, struct reap_chunk, node));
}

void reap_show_tables(struct reap *reap)
{
    if (!reap_may_show_tables(reap)) return;
    reap->tables = reap->own;
    for (struct list_node *node = first_listed(reap); node; node = node->next) {
        struct reap_chunk *chunk = LIST_ENTRY(node, struct reap_chunk, node);
        if (chunk->state == REAP_CHUNK_LISTED) entry_set_reap(chunk, reap);
    }
}
