/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena_table.h"
#include "arena/huge_pages.h"
#include "arena/reclaim.h"
#include "base/kernel.h"
#include "os/pages.h"

#include <errno.h>

SPARSE struct arena_guesses arena_guesses;

/* --- pieces ----------------------------------------------------------------------------------- */

/* A run of slots may go on in the arenas behind. Its pieces are what it has of each arena. The next piece is
 * found by its address: once slots of a piece are free, its struct may belong to other addresses. */
struct piece {
    struct arena *arena;
    char *base;           /* of the arena */
    unsigned first, left; /* slots: the piece's first, and those of it and of the pieces behind */
};

/* The n slots from the `at`-th slot behind the start of an arena on. */
static struct piece pieces_at(const struct arena *arena, unsigned at, unsigned n)
{
    char *base = arena->base + at / ARENA_SLOTS * (size_t)ARENA;
    ASSERT(n >= 1);
    return (struct piece){pagemap_find(base), base, at % ARENA_SLOTS, n};
}

static unsigned slots_in(const struct piece *piece)
{
    unsigned most = ARENA_SLOTS - piece->first;
    return piece->left < most ? piece->left : most;
}

static uint64_t mask_of(const struct piece *piece) { return arena_slot_mask(piece->first, slots_in(piece)); }

static void next_piece(struct piece *piece)
{
    piece->left -= slots_in(piece);
    piece->first = 0;
    if (piece->left == 0) return;
    piece->base += ARENA;
    piece->arena = pagemap_find(piece->base);
}

/* --- looking for a run ------------------------------------------------------------------------ */

/* Returns a bit for each i where slots i to i + n - 1 are all set in free, and i is a multiple of
 * alignment. */
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

/* Returns true for a large object of which only parts may be touched. */
static bool is_maybe_sparse(unsigned n, enum arena_use use)
{
    return n >= ARENA_MAYBE_SPARSE && use >= ARENA_SPAN;
}

/* Returns true if a clean slot of the arena suits an object of n slots. Sparse superblocks leave pages
 * untouched, which huge pages would fill: they take no clean slot of an arena that may have huge pages.
 * Objects that could have huge pages take none of an arena that was made for sparse superblocks. Dirty slots
 * have their memory already, and suit both, but not large objects, of which only parts may be touched. An
 * arena made for an object beyond 4 MiB (huge and sparse) is for large objects. */
static bool suits(const struct arena *arena, unsigned n, enum arena_use use)
{
    if (is_maybe_sparse(n, use)) return !arena->huge || arena->sparse;
    return use == ARENA_SPARSE ? !arena->huge : !arena->sparse;
}

/* Claims n free slots of the arena. Returns the first, or -1. */
static int claim_run(struct arena *arena, unsigned n, unsigned alignment, enum arena_word word)
{
    uint64_t runs;
    while ((runs = runs_of(arena_free_in(arena, word), n, alignment)) != 0) {
        unsigned first = (unsigned)__builtin_ctzll(runs);
        ASSERT(first + n <= ARENA_SLOTS && first % alignment == 0);
        if (arena_claim(arena, arena_slot_mask(first, n))) return (int)first;
    }
    return -1;
}

struct run {
    struct arena *arena; /* NULL: none */
    int first;
};

static struct run claim_in(enum arena_word word, unsigned n, unsigned alignment, enum arena_use use)
{
    struct run run = {NULL, -1};
    while (run.first < 0 && (run.arena = arena_next_with(word, run.arena)) != NULL)
        if (suits(run.arena, n, use) || word == ARENA_DIRTY)
            run.first = claim_run(run.arena, n, alignment, word);
    return run;
}

/* Claims dirty slots first, which the OS need not fill again, and those used last before others. */
static struct run claim_few(unsigned n, unsigned alignment, enum arena_use use)
{
    ASSERT(!is_maybe_sparse(n, use));
    struct run run = {NULL, -1};
    if (atomic_load_explicit(&arenas.dirty_slots, memory_order_relaxed) >= n) {
        run.arena = atomic_load_explicit(&arenas.latest, memory_order_relaxed);
        if (run.arena != NULL) run.first = claim_run(run.arena, n, alignment, ARENA_DIRTY);
        if (run.first < 0) run = claim_in(ARENA_DIRTY, n, alignment, use);
    }
    return run.first >= 0 ? run : claim_in(ARENA_FREE, n, alignment, use);
}

/* --- the best place for a large object ----------------------------------------------------------- */

/* A gap is a run of free slots that no free slot adjoins. It may go on in the arenas behind. */
struct gap {
    char *base;           /* of its first arena */
    unsigned first, size; /* slots; a long gap is seen as one of n + ARENA_SLOTS slots */
};

/* What is looked for, and the best place so far. That is one that lacks least memory; of these, the one in
 * the smallest gap, or in the largest for an object that grows. */
struct place {
    unsigned n, alignment;
    bool grows;
    char *base; /* NULL: none */
    unsigned first, dirty, gap;
};

static bool is_for_large(const struct arena *arena)
{
    return arena != NULL && arena_mapping(arena) == 0 && suits(arena, ARENA_MAYBE_SPARSE, ARENA_SPAN);
}

static unsigned free_at_start(const struct arena *arena)
{
    uint64_t used = is_for_large(arena) ? atomic_load(&arena->used) : UINT64_MAX;
    return used != 0 ? (unsigned)__builtin_ctzll(used) : ARENA_SLOTS;
}

static bool is_free_at_end(const struct arena *arena)
{
    return is_for_large(arena) && (int64_t)atomic_load(&arena->used) >= 0;
}

/* Follows a gap beyond its first arena, as far as an object of n slots may need it. */
static void follow_gap(struct gap *gap, unsigned n)
{
    char *base = gap->base;
    unsigned more = ARENA_SLOTS;
    while (more == ARENA_SLOTS && gap->size < n + ARENA_SLOTS)
        gap->size += more = free_at_start(pagemap_find(base += ARENA));
}

/* Counting bits costs as much as all else here, and mostly all slots are dirty, or none. */
static unsigned dirty_in(char *base, unsigned first, unsigned n)
{
    unsigned dirty = 0;
    struct piece piece = {pagemap_find(base), base, first, n};
    for (; piece.left != 0 && piece.arena != NULL; next_piece(&piece)) {
        uint64_t mask = mask_of(&piece), bits = atomic_load(&piece.arena->dirty) & mask;
        if (bits == 0) continue;
        dirty += bits == mask ? slots_in(&piece) : (unsigned)__builtin_popcountll(bits);
    }
    return dirty;
}

static bool is_better(const struct place *best, unsigned dirty, unsigned gap)
{
    if (best->base == NULL || dirty != best->dirty) return best->base == NULL || dirty > best->dirty;
    return best->grows ? gap > best->gap : gap < best->gap;
}

/* Looks at one place of the gap: n slots from slot `at` of its first arena. */
static void consider(const struct gap *gap, unsigned at, struct place *best)
{
    if (at < gap->first || at + best->n > gap->first + gap->size) return;
    char *base = gap->base + at / ARENA_SLOTS * (size_t)ARENA;
    unsigned dirty = dirty_in(base, at % ARENA_SLOTS, best->n);
    unsigned room = best->grows ? gap->first + gap->size - at : gap->size;
    if (!is_better(best, dirty, room)) return;
    best->base = base;
    best->first = at % ARENA_SLOTS;
    best->dirty = dirty;
    best->gap = room;
}

/* Looks at three places of a gap: its start, its end, and from its first dirty slot of the first arena. */
static void consider_gap(struct gap *gap, uint64_t dirty, struct place *best)
{
    unsigned n = best->n, alignment = best->alignment;
    ASSERT(is_power_of_two(alignment) && gap->size != 0);
    if (gap->first + gap->size == ARENA_SLOTS) follow_gap(gap, n);
    if (gap->size < n) return;
    if (best->dirty == n && gap->size >= best->gap && !best->grows) return; /* the gap is no better */
    unsigned end = gap->first + gap->size;
    consider(gap, (gap->first + alignment - 1) & -alignment, best);
    if (end - n != gap->first) consider(gap, (end - n) & -alignment, best);
    dirty &= end < ARENA_SLOTS ? arena_slot_mask(gap->first, gap->size) : UINT64_MAX << gap->first;
    if (dirty != 0) consider(gap, (unsigned)__builtin_ctzll(dirty) & -alignment, best);
}

/* Looks at the gaps that begin in an arena. */
static void consider_arena(const struct arena *arena, struct place *best)
{
    char *base = arena_base(arena);
    uint64_t used = atomic_load(&arena->used), dirty = atomic_load(&arena->dirty) & ~used;
    for (unsigned first = 0; first < ARENA_SLOTS;) {
        uint64_t left = ~used >> first;
        if (left == 0) return;
        first += (unsigned)__builtin_ctzll(left);
        uint64_t behind = used >> first;
        unsigned size = behind != 0 ? (unsigned)__builtin_ctzll(behind) : ARENA_SLOTS - first;
        struct gap gap = {base, first, size};
        bool goes_on = first == 0 && is_free_at_end(pagemap_find(base - ARENA));
        if (!goes_on) consider_gap(&gap, dirty, best);
        first += size;
    }
}

/* In a program with very many arenas, a good place is enough. */
static struct place best_place(unsigned n, unsigned alignment, bool grows)
{
    enum { LOOKS = 256 };
    struct place best = {.n = n, .alignment = alignment, .grows = grows};
    struct arena *arena = NULL;
    for (unsigned looks = 0; looks < LOOKS || best.base == NULL; looks++) {
        arena = arena_next_with(ARENA_FREE, arena);
        if (arena == NULL) break;
        if (is_for_large(arena)) consider_arena(arena, &best);
        if (best.dirty == n && best.gap - n <= n / 8 && !grows) break; /* none is much better */
    }
    return best;
}

/* Makes claimed pieces free again, until `left` slots are left. */
static void unclaim(struct piece piece, unsigned left)
{
    while (piece.left != left) {
        struct piece this = piece;
        next_piece(&piece);
        arena_release(this.arena, mask_of(&this));
    }
}

/* Claims n slots from slot `first` of the arena at `base`, if they are there and free. The struct that is
 * found may be another arena's by the time that its slots are claimed. */
static bool claim_slots(char *base, unsigned first, unsigned n)
{
    struct piece begin = {pagemap_find(base), base, first, n}, piece = begin;
    for (; piece.left != 0; next_piece(&piece)) {
        if (piece.arena == NULL || !arena_claim(piece.arena, mask_of(&piece))) break;
        if (piece.arena->base == piece.base) continue;
        arena_release(piece.arena, mask_of(&piece));
        break;
    }
    if (piece.left == 0) return true;
    unclaim(begin, piece.left);
    return false;
}

/* Claims slots for a large object where most of them have memory. Otherwise unused memory would stay beside
 * memory that the OS fills: of all places those count that need least of it. Of these the smallest gap. */
static struct run claim_many(unsigned n, unsigned alignment, bool grows)
{
    enum { TRIES = 8 };
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct place best = best_place(n, alignment, grows);
        if (best.base == NULL) break;
        if (claim_slots(best.base, best.first, n))
            return (struct run){pagemap_find(best.base), (int)best.first};
    }
    return (struct run){NULL, -1};
}

static struct run claim(unsigned n, unsigned alignment, enum arena_use use)
{
    if (is_maybe_sparse(n, use)) return claim_many(n, alignment, use == ARENA_GROWS);
    return claim_few(n, alignment, use);
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

/* The bytes of claimed pieces that have no memory. */
static size_t clean_bytes(struct piece piece)
{
    unsigned clean = 0;
    for (; piece.left != 0; next_piece(&piece)) {
        uint64_t mask = mask_of(&piece);
        clean += (unsigned)__builtin_popcountll(mask & ~claimed_dirty(piece.arena, mask));
    }
    return clean * (size_t)SUPERBLOCK;
}

/* Puts claimed pieces of an object of n slots into use, if the memory that they lack may be held; otherwise
 * makes them free. */
static bool use_pieces(struct piece piece, unsigned n, enum arena_use use, bool *clean)
{
    bool no_huge_pages = is_maybe_sparse(n, use) && n <= ARENA_SLOTS;
    if (!arena_make_room(clean_bytes(piece))) {
        unclaim(piece, 0);
        return false;
    }
    *clean = true;
    for (; piece.left != 0; next_piece(&piece)) {
        if (no_huge_pages) arena_no_huge_pages(piece.arena);
        *clean &= begin_use(piece.arena, mask_of(&piece));
    }
    arena_note_wanted();
    return true;
}

static size_t least_for(unsigned n) { return (n + ARENA_SLOTS - 1) / ARENA_SLOTS; }

/* Returns how many arenas to make at a time: enough for half of the bytes held. The kernel maps and advises
 * many as fast as one. Meanwhile page faults wait for it, on a busy machine for long. An object that needs
 * several of them can grow by half. */
static size_t together(unsigned n)
{
    size_t count = atomic_load_explicit(&arenas.held, memory_order_relaxed) / 2 / ARENA, least = least_for(n);
    if (least > 1) least += (least + 1) / 2;
    return count < least ? least : count < ARENA_TOGETHER ? count : ARENA_TOGETHER;
}

/* Makes an arena at base. All its slots are claimed. */
static struct arena *create_at(char *base, struct arena_nature nature)
{
    struct arena *arena = arena_create_at(base, ARENA);
    if (arena == NULL) {
        pages_unmap(base, ARENA);
        return NULL;
    }
    arena->huge = nature.huge;
    arena->sparse = nature.sparse;
    return arena;
}

/* Makes `count` arenas at base. n slots, from the first one's first slot on, stay claimed. The arenas of a
 * run must follow each other: where one cannot be made, the run begins anew behind it. */
static struct run create_all(char *base, size_t count, unsigned n, struct arena_nature nature)
{
    struct run run = {NULL, -1};
    unsigned have = 0; /* slots of the run */
    for (size_t i = 0; i < count; i++) {
        struct arena *arena = create_at(base + i * ARENA, nature);
        if (arena == NULL) {
            if (have < n && have != 0) unclaim(pieces_at(run.arena, 0, have), 0);
            if (have < n) have = 0;
            continue;
        }
        unsigned part = n - have < ARENA_SLOTS ? n - have : ARENA_SLOTS;
        if (have == 0) run = (struct run){arena, 0};
        have += part;
        uint64_t rest = part != 0 ? ~arena_slot_mask(0, part) : UINT64_MAX;
        if (rest != 0) arena_release(arena, rest);
    }
    if (have == n) return run;
    if (have != 0) unclaim(pieces_at(run.arena, 0, have), 0);
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
    unsigned large = use >= ARENA_SPAN ? n : 1;
    struct arena_nature nature = arena_nature_for(large, use == ARENA_SPARSE, (unsigned)count);
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

struct superblock *arena_take(unsigned n, unsigned alignment, enum superblock_kind kind, enum arena_use use,
                              bool *clean)
{
    struct run run = claim_or_create(n, alignment, use);
    if (run.first < 0) return NULL;
    unsigned first = (unsigned)run.first;
    ASSERT(first % alignment == 0 && run.arena->slots[first].kind == SLOT_FREE);
    if (!use_pieces(pieces_at(run.arena, first, n), n, use, clean)) return NULL;
    atomic_fetch_or(&run.arena->heads, (uint64_t)1 << first);
    return arena_slot_set(run.arena, first, kind, n);
}

static struct arena *arena_of_slot(const struct superblock *slot) { return pagemap_find(slot_start(slot)); }

/* Makes a used piece free. Its descriptors are those of free slots. */
static void end_piece(struct arena *arena, uint64_t mask)
{
    ASSERT((atomic_load(&arena->used) & mask) == mask && (atomic_load(&arena->dirty) & mask) == 0);
    atomic_fetch_and(&arena->heads, ~mask);
    atomic_fetch_or(&arena->dirty, mask);
    atomic_store_explicit(&arena->freed_at, pages_clock(), memory_order_relaxed);
    unsigned slots = (unsigned)__builtin_popcountll(mask);
    atomic_fetch_add_explicit(&arenas.dirty_slots, slots, memory_order_relaxed);
    arena_release(arena, mask);
    atomic_store_explicit(&arenas.latest, arena, memory_order_relaxed);
}

/* Makes used pieces free. Only the first descriptor is not yet one of a free slot. */
static void end_use(struct piece piece)
{
    struct superblock *slot = &piece.arena->slots[piece.first];
    slot->kind = SLOT_FREE;
    slot->inverse = 0;
    while (piece.left != 0) {
        struct piece this = piece;
        next_piece(&piece);
        end_piece(this.arena, mask_of(&this));
    }
}

void arena_give(struct superblock *first, unsigned n)
{
    struct arena *arena = arena_of_slot(first);
    ASSERT(arena != NULL && arena->mapping == 0);
    ASSERT(atomic_load(&arena->heads) >> (first - arena->slots) & 1);
    end_use(pieces_at(arena, (unsigned)(first - arena->slots), n));
}

bool arena_resize(struct superblock *first, unsigned n, int more)
{
    struct arena *arena = arena_of_slot(first);
    ASSERT(arena != NULL && arena->mapping == 0 && arena_span(first) == n);
    ASSERT(first->kind == SLOT_SPAN || first->kind == SLOT_SPAN_CHUNK);
    unsigned end = (unsigned)(first - arena->slots) + n, after = n + (unsigned)more;
    bool clean;
    ASSERT(after >= 1 && (int)n + more >= 1);
    if (more > 0) {
        struct piece behind = pieces_at(arena, end, (unsigned)more);
        if (!claim_slots(behind.base, behind.first, behind.left)) return false;
        if (!use_pieces(pieces_at(arena, end, (unsigned)more), after, ARENA_SPAN, &clean)) return false;
    }
    __atomic_store_n(&first->word, after, __ATOMIC_RELAXED);
    if (more < 0) end_use(pieces_at(arena, end - (unsigned)-more, (unsigned)-more));
    return true;
}

unsigned arena_span(const struct superblock *first)
{
    return (unsigned)__atomic_load_n(&first->word, __ATOMIC_RELAXED);
}

/* Stale pointers come here, too, and those into slots that a thread has just claimed. */
struct superblock *arena_head_before(struct arena *arena, const void *pointer)
{
    const char *base = (const char *)align_down((uintptr_t)pointer, ARENA);
    for (unsigned i = 1; i < ARENA_SPAN_MAX / ARENA + 1; i++) {
        struct arena *before = pagemap_find(base - i * (size_t)ARENA);
        if (before == NULL || arena_mapping(before) != 0 || (int64_t)atomic_load(&before->used) >= 0) break;
        uint64_t heads = atomic_load(&before->heads);
        if (heads == 0) continue;
        struct superblock *head = &before->slots[63 - (unsigned)__builtin_clzll(heads)];
        bool is_span = head->kind == SLOT_SPAN || head->kind == SLOT_SPAN_CHUNK;
        size_t bytes = is_span ? arena_span(head) * (size_t)SUPERBLOCK : 0;
        const char *start = base - i * (size_t)ARENA + (head - before->slots) * (ptrdiff_t)SUPERBLOCK;
        if ((size_t)((const char *)pointer - start) < bytes) return head;
        break;
    }
    return arena_slot(arena, pointer);
}

/* --- all of them ------------------------------------------------------------------------------ */

void arena_begin_sharing(void) { arenas.shared = true; }

bool arena_has_unused(size_t bytes) { return arena_unused() >= bytes; }

struct arena *arena_first(void) { return atomic_load_explicit(&arenas.all, memory_order_acquire); }

void arena_freeze(void) { gate_close(&arenas.gate); }

void arena_thaw(void) { gate_open(&arenas.gate); }

void arena_fork_prepare(void) { gate_close_for_fork(&arenas.gate); }

void arena_fork_parent(void) { gate_open_after_fork(&arenas.gate); }

void arena_fork_child(void)
{
    gate_reset(&arenas.gate);
    arenas.creating = false;
}
