/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena_table.h"
#include "arena/best_place.h"
#include "arena/huge_pages.h"
#include "arena/reclaim.h"
#include "base/kernel.h"
#include "os/pages.h"

#include <errno.h>

/* --- looking for a run ------------------------------------------------------------------------ */

/* A bit for each i, a multiple of alignment, where slots i to i + n - 1 are all set in free. */
static uint64_t runs_of(uint64_t free, unsigned n, unsigned alignment)
{
    ASSERT(n >= 1 && n <= ARENA_SLOTS && alignment <= ARENA_SLOTS && is_power_of_two(alignment));
    while (n > 1 && free != 0) {
        unsigned half = n / 2;
        free &= free >> half;
        n -= half;
    }
    for (unsigned step = 1; step < alignment; step *= 2) {
        static const uint64_t multiples[] = {0x5555555555555555, 0x1111111111111111, 0x0101010101010101,
                                             0x0001000100010001, 0x0000000100000001, 1};
        free &= multiples[__builtin_ctz(step)];
    }
    return free;
}

static bool is_sparse(enum arena_use use) { return use == ARENA_SPARSE || use == ARENA_CHUNKS; }

/* Returns true for a large object of which only parts may be touched. */
static bool is_maybe_sparse(unsigned n, enum arena_use use)
{
    return n >= ARENA_MAYBE_SPARSE && use >= ARENA_SPAN;
}

/* Returns true if a clean slot of the arena suits the use. Sparse superblocks leave pages untouched, which
 * huge pages would fill; objects that could have huge pages take no slot of an arena without them. Dirty
 * slots have their memory already, and suit both. */
static bool suits(const struct arena *arena, enum arena_use use)
{
    return is_sparse(use) ? !arena->huge : !arena->sparse;
}

/* Claims n free slots of the arena. Returns the first, or -1. */
static int claim_run(struct arena *arena, unsigned n, unsigned alignment, enum arena_word word,
                     enum arena_use use)
{
    uint64_t runs;
    while ((runs = runs_of(arena_free_in(arena, word), n, alignment)) != 0) {
        uint64_t later = use == ARENA_CHUNKS ? runs & -((uint64_t)1 << ARENA_CHUNKS_FROM) : 0;
        unsigned first = (unsigned)__builtin_ctzll(later != 0 ? later : runs);
        ASSERT(first + n <= ARENA_SLOTS && first % alignment == 0);
        if (arena_claim(arena, arena_slot_mask(first, n))) return (int)first;
    }
    return -1;
}

static struct run claim_in(enum arena_word word, unsigned n, unsigned alignment, enum arena_use use)
{
    struct run run = {NULL, -1};
    while (run.first < 0 && (run.arena = arena_next_with(word, run.arena)) != NULL)
        if (suits(run.arena, use) || word == ARENA_DIRTY)
            run.first = claim_run(run.arena, n, alignment, word, use);
    return run;
}

/* Claims dirty slots first, which the OS need not fill again, and those used last before others. */
static struct run claim_few(unsigned n, unsigned alignment, enum arena_use use)
{
    ASSERT(!is_maybe_sparse(n, use));
    struct run run = {NULL, -1};
    if (atomic_load_explicit(&arenas.dirty_slots, memory_order_relaxed) >= n) {
        run.arena = atomic_load_explicit(&arenas.latest, memory_order_relaxed);
        if (run.arena != NULL) run.first = claim_run(run.arena, n, alignment, ARENA_DIRTY, use);
        if (run.first < 0) run = claim_in(ARENA_DIRTY, n, alignment, use);
    }
    return run.first >= 0 ? run : claim_in(ARENA_FREE, n, alignment, use);
}

/* Claims slots of an arena that may have huge pages and is not in use. It will have none. */
static struct run claim_of_unused(unsigned n)
{
    struct arena *arena = NULL;
    while ((arena = arena_next_with(ARENA_FREE, arena)) != NULL)
        if (arena->huge && !arena->sparse && arena_free_in(arena, ARENA_FREE) == UINT64_MAX &&
            arena_claim(arena, arena_slot_mask(0, n)))
            return (struct run){arena, 0};
    return (struct run){NULL, -1};
}

static struct run claim(unsigned n, unsigned alignment, enum arena_use use)
{
    if (!is_maybe_sparse(n, use)) return claim_few(n, alignment, use);
    struct run run = arena_claim_best(n, alignment, use == ARENA_GROWS);
    return run.first >= 0 || n > ARENA_SLOTS ? run : claim_of_unused(n);
}

/* --- taking and giving ------------------------------------------------------------------------ */

static uint64_t claimed_dirty(const struct arena *arena, uint64_t mask)
{
    return atomic_load_explicit(&arena->dirty, memory_order_relaxed) & mask;
}

/* Puts claimed slots into use. Returns true if all were clean. */
static bool begin_use(struct arena *arena, uint64_t mask)
{
    ASSERT((atomic_load(&arena->used) & mask) == mask && (atomic_load(&arena->heads) & mask) == 0);
    uint64_t dirty = claimed_dirty(arena, mask);
    unsigned slots = (unsigned)__builtin_popcountll(mask),
             dirty_slots = (unsigned)__builtin_popcountll(dirty);
    if (dirty != 0) {
        atomic_fetch_and(&arena->dirty, ~dirty);
        atomic_fetch_sub_explicit(&arenas.dirty_slots, dirty_slots, memory_order_relaxed);
        arena_look_for(arena, ARENA_DIRTY);
    }
    ASSERT((atomic_load(&arena->dirty) & mask) == 0);
    if (dirty_slots < slots) arena_count_held((slots - dirty_slots) * (size_t)SUPERBLOCK, 0);
    arena_look_for(arena, ARENA_FREE);
    return dirty == 0;
}

static size_t clean_bytes(const struct arena *arena, uint64_t mask)
{
    return (size_t)__builtin_popcountll(mask & ~claimed_dirty(arena, mask)) * SUPERBLOCK;
}

static size_t least_for(unsigned n) { return (n + ARENA_SLOTS - 1) / ARENA_SLOTS; }

/* Returns how many arenas to make at a time: enough for half of the bytes held. The kernel maps many as
 * fast as one, and page faults wait meanwhile. An object that needs several of them can grow by half. */
static size_t together(unsigned n)
{
    size_t count = atomic_load_explicit(&arenas.held, memory_order_relaxed) / 2 / ARENA, least = least_for(n);
    if (least > 1) least += (least + 1) / 2;
    return count < least ? least : count < ARENA_TOGETHER ? count : ARENA_TOGETHER;
}

/* Makes `count` arenas at base. n slots, from the first one's first slot on, stay claimed. The arenas of a
 * run must follow each other: where one cannot be made, the run begins anew behind it. */
static struct run create_all(char *base, size_t count, unsigned n, struct arena_nature nature)
{
    struct run run = {NULL, -1};
    unsigned have = 0; /* slots of the run */
    for (size_t i = 0; i < count; i++) {
        struct arena *arena = arena_create_at(base + i * ARENA, ARENA);
        if (arena == NULL) {
            pages_unmap(base + i * ARENA, ARENA);
            if (have < n && have != 0) arena_unclaim(piece_at(run.arena, 0, have), 0);
            if (have < n) have = 0;
            continue;
        }
        arena->huge = nature.huge;
        arena->sparse = nature.sparse;
        unsigned part = n - have < ARENA_SLOTS ? n - have : ARENA_SLOTS;
        if (have == 0) run = (struct run){arena, 0};
        have += part;
        uint64_t rest = part != 0 ? ~arena_slot_mask(0, part) : UINT64_MAX;
        if (rest != 0) arena_release(arena, rest);
    }
    if (have == n) return run;
    if (have != 0) arena_unclaim(piece_at(run.arena, 0, have), 0);
    errno = ENOMEM;
    return (struct run){NULL, -1};
}

/* Makes `count` arenas; if the OS refuses so many, as few as n slots need. */
static struct run create(size_t count, unsigned n, enum arena_use use)
{
    size_t least = least_for(n);
    ASSERT(n >= 1 && count >= least);
    char *base = arena_map(count * ARENA, ARENA);
    if (base == NULL && count > least) base = arena_map((count = least) * ARENA, ARENA);
    if (base == NULL) return (struct run){NULL, -1};
    /* No gap is large enough for this object: what they have goes back for what it needs. */
    if (use >= ARENA_SPAN) arena_purge_unused(0, n * (size_t)SUPERBLOCK);
    pages_name(base, count * ARENA, arena_name);
    unsigned large = use >= ARENA_SPAN ? n : 1;
    struct arena_nature nature = arena_nature_for(large, is_sparse(use), (unsigned)count);
    arena_advise(base, count * ARENA, nature);
    return create_all(base, count, n, nature);
}

/* Claims slots, or makes arenas for them. Of several threads that find no slots, one makes arenas; the others
 * look for its slots a few times, and only then make an arena each. */
static struct run claim_or_create(unsigned n, unsigned alignment, enum arena_use use)
{
    enum { LOOKS = 8 };
    struct run run = claim(n, alignment, use);
    if (run.first >= 0 || !arena_make_room((size_t)n * SUPERBLOCK)) return run;
    for (unsigned looks = 0; atomic_exchange(&arenas.creating, true); looks++) {
        if (looks == LOOKS) return create(least_for(n), n, use);
        KERNEL(SYS_sched_yield);
        run = claim(n, alignment, use);
        if (run.first >= 0) return run;
    }
    run = claim(n, alignment, use);
    if (run.first < 0) run = create(together(n), n, use);
    atomic_store(&arenas.creating, false);
    return run;
}

/* --- the slots of a superblock ------------------------------------------------------------------ */

struct superblock *arena_take(unsigned n, enum superblock_kind kind, enum arena_use use, bool *clean)
{
    struct run run = claim_or_create(n, 1, use);
    if (run.first < 0) return NULL;
    uint64_t mask = arena_slot_mask((unsigned)run.first, n);
    if (!arena_make_room(clean_bytes(run.arena, mask))) {
        arena_release(run.arena, mask);
        return NULL;
    }
    *clean = begin_use(run.arena, mask);
    arena_note_wanted();
    return arena_slot_set(run.arena, (unsigned)run.first, kind, n);
}

static struct arena *arena_of_slot(const struct superblock *slot) { return pagemap_find(slot_start(slot)); }

static void free_descriptor(struct superblock *slot)
{
    slot->kind = SLOT_FREE;
    slot->inverse = 0;
}

/* Makes used slots free, with their memory. Their descriptors are those of free slots. */
static void end_slots(struct arena *arena, uint64_t mask)
{
    ASSERT((atomic_load(&arena->used) & mask) == mask && (atomic_load(&arena->dirty) & mask) == 0);
    atomic_fetch_and(&arena->heads, ~mask);
    atomic_fetch_or(&arena->dirty, mask);
    uint64_t idle_for = atomic_load_explicit(&arenas.idle_for, memory_order_relaxed);
    uint64_t since = pages_clock() - idle_for;
    if (idle_for == 0 || since > atomic_load_explicit(&arena->freed_at, memory_order_relaxed))
        atomic_store_explicit(&arena->freed_at, since, memory_order_relaxed);
    unsigned slots = (unsigned)__builtin_popcountll(mask);
    atomic_fetch_add_explicit(&arenas.dirty_slots, slots, memory_order_relaxed);
    arena_release(arena, mask);
    atomic_store_explicit(&arenas.latest, arena, memory_order_relaxed);
}

void arena_give(struct superblock *sb, unsigned n)
{
    struct arena *arena = arena_of_slot(sb);
    ASSERT(arena != NULL && arena->mapping == 0);
    free_descriptor(sb);
    end_slots(arena, arena_slot_mask((unsigned)(sb - arena->slots), n));
}

/* --- the pieces of a span ------------------------------------------------------------------------- */

/* Puts claimed pieces into use, if the memory that they lack may be held; otherwise makes them free. */
static bool use_pieces(struct piece piece, unsigned n, enum arena_use use, bool *clean)
{
    bool no_huge_pages = is_maybe_sparse(n, use) && n <= ARENA_SLOTS;
    size_t more = 0;
    for (struct piece each = piece; each.left != 0; piece_next(&each))
        more += clean_bytes(each.arena, piece_mask(&each));
    if (!arena_make_room(more)) {
        arena_unclaim(piece, 0);
        return false;
    }
    *clean = true;
    for (; piece.left != 0; piece_next(&piece)) {
        if (no_huge_pages) arena_no_huge_page_here(piece.arena);
        *clean &= begin_use(piece.arena, piece_mask(&piece));
    }
    arena_note_wanted();
    return true;
}

struct superblock *arena_take_span(unsigned n, unsigned alignment, enum superblock_kind kind,
                                   enum arena_use use, bool *clean)
{
    struct run run = claim_or_create(n, alignment, use);
    if (run.first < 0) return NULL;
    unsigned first = (unsigned)run.first;
    ASSERT(first % alignment == 0);
    if (!use_pieces(piece_at(run.arena, first, n), n, use, clean)) return NULL;
    return arena_slot_set(run.arena, first, kind, n);
}

/* Makes used pieces free. All descriptors are those of free slots. */
static void end_pieces(struct piece piece)
{
    while (piece.left != 0) {
        struct piece this = piece;
        piece_next(&piece);
        end_slots(this.arena, piece_mask(&this));
    }
}

void arena_give_span(struct superblock *first)
{
    struct arena *arena = arena_of_slot(first);
    unsigned n = arena_span(first);
    ASSERT(arena != NULL && arena->mapping == 0);
    free_descriptor(first);
    end_pieces(piece_at(arena, (unsigned)(first - arena->slots), n));
}

void arena_give_lifted(struct superblock *first)
{
    struct arena *arena = arena_of_slot(first);
    unsigned i = (unsigned)(first - arena->slots), n = arena_span(first);
    free_descriptor(first);
    atomic_fetch_and(&arena->heads, ~((uint64_t)1 << i));
    arena_unclaim(piece_at(arena, i, n), 0);
}

bool arena_resize(struct superblock *first, unsigned n, int more)
{
    struct arena *arena = arena_of_slot(first);
    ASSERT(arena != NULL && arena->mapping == 0 && arena_span(first) == n);
    ASSERT(first->kind == SLOT_SPAN || first->kind == SLOT_SPAN_CHUNK);
    unsigned end = (unsigned)(first - arena->slots) + n, after = n + (unsigned)more;
    bool clean;
    ASSERT((int)n + more >= 1);
    if (more > 0) {
        struct piece behind = piece_at(arena, end, (unsigned)more);
        if (!arena_claim_at(behind.base, behind.first, behind.left)) return false;
        if (!use_pieces(piece_at(arena, end, (unsigned)more), after, ARENA_SPAN, &clean)) return false;
    }
    __atomic_store_n(&first->word, after, __ATOMIC_RELAXED);
    if (more < 0) end_pieces(piece_at(arena, end - (unsigned)-more, (unsigned)-more));
    return true;
}
