/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena_internal.h"
#include "arena/huge_pages.h"
#include "os/pages.h"

#include <errno.h>
#include <sched.h>

struct arena_guesses arena_guesses;

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

/* Does a clean slot of the arena suit an object of n slots? Sparse superblocks leave pages untouched, which
 * huge pages would fill: they take no clean slot of an arena that may have huge pages. Objects that could
 * have huge pages take none of an arena that was made for sparse superblocks. Dirty slots have their memory
 * already, and suit both, but not large objects, of which only parts may be touched. */
static bool suits(const struct arena *arena, unsigned n, bool sparse)
{
    if (sparse || n >= ARENA_MAYBE_SPARSE) return !arena->huge;
    return !arena->sparse;
}

/* Returns the free slots, or only the dirty ones. */
static uint64_t free_in(const struct arena *arena, enum arena_word word)
{
    uint64_t free = ~atomic_load(&arena->used);
    return word == ARENA_DIRTY ? free & atomic_load(&arena->dirty) : free;
}

static bool has_free(const struct arena *arena) { return free_in(arena, ARENA_FREE) != 0; }

static bool has_dirty(const struct arena *arena) { return free_in(arena, ARENA_DIRTY) != 0; }

void arena_look_for_dirty(struct arena *arena)
{
    if (!has_dirty(arena)) arena_hint_clear(&arena->group->dirty, arena, has_dirty);
}

/* Notes that no run is longer than n - 1. A thread that frees slots resets the note afterwards. So either its
 * reset follows this store, or this thread sees its slots and resets the note itself. */
static void no_run_in(struct arena *arena, enum arena_word word, unsigned n, uint64_t free)
{
    ASSERT(n >= 1 && n <= ARENA_SLOTS);
    _Atomic uint8_t *longest = word == ARENA_DIRTY ? &arena->longest_dirty : &arena->longest_free;
    atomic_store(longest, (uint8_t)(n - 1));
    if ((free_in(arena, word) & ~free) != 0) atomic_store(longest, ARENA_SLOTS);
}

/* Claims n free slots of the arena. Returns the first, or -1. */
static int claim_run(struct arena *arena, unsigned n, unsigned alignment, enum arena_word word)
{
    const _Atomic uint8_t *longest = word == ARENA_DIRTY ? &arena->longest_dirty : &arena->longest_free;
    if (n > atomic_load(longest)) return -1;
    for (;;) {
        uint64_t free = free_in(arena, word), runs = runs_of(free, n, alignment);
        if (runs == 0) {
            if (alignment == 1) no_run_in(arena, word, n, free);
            return -1;
        }
        unsigned first = (unsigned)__builtin_ctzll(runs);
        ASSERT(first + n <= ARENA_SLOTS && first % alignment == 0);
        if (arena_claim(arena, arena_slot_mask(first, n))) return (int)first;
    }
}

struct run {
    struct arena *arena; /* NULL: none */
    int first;
};

static struct run claim_in(enum arena_word word, unsigned n, unsigned alignment, bool sparse)
{
    struct run run = {NULL, -1};
    while (run.first < 0 && (run.arena = arena_next_with(word, run.arena)) != NULL)
        if (suits(run.arena, n, sparse) || (word == ARENA_DIRTY && n < ARENA_MAYBE_SPARSE))
            run.first = claim_run(run.arena, n, alignment, word);
    return run;
}

/* Claims dirty slots first, which the OS need not fill again, and those used last before others. */
static struct run claim(unsigned n, unsigned alignment, bool sparse)
{
    struct run run = {NULL, -1};
    if (atomic_load_explicit(&arenas.dirty_slots, memory_order_relaxed) >= n) {
        run.arena = atomic_load_explicit(&arenas.latest, memory_order_relaxed);
        if (run.arena != NULL && (n < ARENA_MAYBE_SPARSE || suits(run.arena, n, sparse)))
            run.first = claim_run(run.arena, n, alignment, ARENA_DIRTY);
        if (run.first < 0) run = claim_in(ARENA_DIRTY, n, alignment, sparse);
    }
    return run.first >= 0 ? run : claim_in(ARENA_FREE, n, alignment, sparse);
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
        arena_look_for_dirty(arena);
    }
    ASSERT((atomic_load(&arena->dirty) & mask) == 0);
    if (dirty_slots < slots) arena_count_held((slots - dirty_slots) * (size_t)SUPERBLOCK, 0);
    if (!has_free(arena)) arena_hint_clear(&arena->group->free, arena, has_free);
    return dirty == 0;
}

void arena_release(struct arena *arena, uint64_t mask)
{
    ASSERT(mask != 0 && (atomic_load(&arena->used) & mask) == mask);
    ASSERT((atomic_load(&arena->heads) & mask) == 0 && arena->mapping == 0);
    bool dirty = claimed_dirty(arena, mask) != 0;
    atomic_fetch_and(&arena->used, ~mask);
    atomic_store(&arena->longest_free, ARENA_SLOTS);
    atomic_store(&arena->longest_dirty, ARENA_SLOTS);
    arena_hint_set(&arena->group->free, arena);
    if (dirty) arena_hint_set(&arena->group->dirty, arena);
}

static size_t clean_bytes(const struct arena *arena, uint64_t mask)
{
    return (size_t)__builtin_popcountll(mask & ~claimed_dirty(arena, mask)) * SUPERBLOCK;
}

/* Returns how many arenas to make at a time: enough for half of the bytes held. The kernel maps and advises
 * many as fast as one. Meanwhile page faults wait for it, on a busy machine for long. */
static size_t together(void)
{
    size_t count = atomic_load_explicit(&arenas.held, memory_order_relaxed) / 2 / ARENA;
    return count < 1 ? 1 : count < ARENA_TOGETHER ? count : ARENA_TOGETHER;
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

/* Makes `count` arenas. The first n slots of the first one stay claimed. */
static struct run create(size_t count, unsigned n, bool sparse)
{
    ASSERT(count >= 1 && n >= 1 && n <= ARENA_SLOTS);
    struct run run = {NULL, -1};
    char *base = arena_map(count * ARENA, ARENA);
    if (base == NULL && count > 1) base = arena_map((count = 1) * ARENA, ARENA);
    if (base == NULL) return run;
    struct arena_nature nature = arena_nature_for(n, sparse, (unsigned)count);
    arena_advise(base, count * ARENA, nature);
    for (size_t i = 0; i < count; i++) {
        struct arena *arena = create_at(base + i * ARENA, nature);
        uint64_t rest = run.arena != NULL ? UINT64_MAX : ~arena_slot_mask(0, n);
        if (arena != NULL && rest != 0) arena_release(arena, rest);
        if (arena != NULL && run.arena == NULL) run = (struct run){arena, 0};
    }
    if (run.arena == NULL) errno = ENOMEM;
    return run;
}

/* Claims slots, or makes arenas for them. Of several threads that find no slots, one makes arenas; the others
 * look for its slots a few times, and only then make an arena each. */
static struct run claim_or_create(unsigned n, unsigned alignment, bool sparse, struct arena_room *room)
{
    enum { LOOKS = 8 };
    struct run run = claim(n, alignment, sparse);
    for (unsigned looks = 0; run.first < 0; looks++) {
        if (!arena_has_room((size_t)n * SUPERBLOCK, room)) return run;
        if (!atomic_exchange(&arenas.creating, true)) {
            run = claim(n, alignment, sparse);
            if (run.first < 0) run = create(together(), n, sparse);
            atomic_store(&arenas.creating, false);
            return run;
        }
        if (looks == LOOKS) return create(1, n, sparse);
        sched_yield();
        run = claim(n, alignment, sparse);
    }
    return run;
}

struct superblock *arena_try_take(unsigned n, unsigned alignment, enum superblock_kind kind, bool sparse,
                                  bool *clean, struct arena_room *room)
{
    struct run run = claim_or_create(n, alignment, sparse, room);
    if (run.first < 0) return NULL;
    unsigned first = (unsigned)run.first;
    uint64_t mask = arena_slot_mask(first, n);
    ASSERT((atomic_load(&run.arena->used) & mask) == mask && first % alignment == 0);
    if (!arena_has_room(clean_bytes(run.arena, mask), room)) {
        arena_release(run.arena, mask);
        return NULL;
    }
    if (n >= ARENA_MAYBE_SPARSE) arena_no_huge_pages(run.arena);
    ASSERT(run.arena->slots[first].kind == SLOT_FREE);
    *clean = begin_use(run.arena, mask);
    atomic_fetch_or(&run.arena->heads, (uint64_t)1 << first);
    return arena_slot_set(run.arena, first, n, kind);
}

struct superblock *arena_slot_set(struct arena *arena, unsigned i, unsigned n, enum superblock_kind kind)
{
    ASSERT(n >= 1 && i + n <= ARENA_SLOTS && arena->base != NULL && kind != SLOT_FREE);
    ASSERT(atomic_load(&arena->used) >> i & 1);
    struct superblock *slot = &arena->slots[i];
    slot->origin = arena->base + (size_t)i * SUPERBLOCK - BLOCK_BIAS;
    slot->kind = (uint8_t)kind;
    slot->word = n;
    return slot;
}

static struct arena *arena_of_slot(const struct superblock *slot) { return pagemap_find(slot_start(slot)); }

/* Makes n used slots free. Only the first descriptor is not yet one of a free slot. */
static void end_use(struct arena *arena, unsigned first, unsigned n)
{
    uint64_t mask = arena_slot_mask(first, n);
    ASSERT(n >= 1 && first + n <= ARENA_SLOTS && (atomic_load(&arena->used) & mask) == mask);
    ASSERT((atomic_load(&arena->dirty) & mask) == 0);
    ASSERT((atomic_load(&arena->heads) & mask & ~((uint64_t)1 << first)) == 0);
    arena->slots[first].kind = SLOT_FREE;
    arena->slots[first].inverse = 0;
    atomic_fetch_and(&arena->heads, ~mask);
    atomic_fetch_or(&arena->dirty, mask);
    atomic_store_explicit(&arena->freed_at, pages_clock(), memory_order_relaxed);
    atomic_fetch_add_explicit(&arenas.dirty_slots, n, memory_order_relaxed);
    arena_release(arena, mask);
    atomic_store_explicit(&arenas.latest, arena, memory_order_relaxed);
}

void arena_give(struct superblock *first, unsigned n)
{
    struct arena *arena = arena_of_slot(first);
    ASSERT(arena != NULL && arena->mapping == 0 && first->kind != SLOT_FREE);
    ASSERT(atomic_load(&arena->heads) >> (first - arena->slots) & 1);
    end_use(arena, (unsigned)(first - arena->slots), n);
}

static bool grow(struct arena *arena, unsigned end, unsigned more, struct arena_room *room)
{
    uint64_t mask = end + more <= ARENA_SLOTS ? arena_slot_mask(end, more) : 0;
    if (mask == 0 || !arena_claim(arena, mask)) return false;
    if (!arena_has_room(clean_bytes(arena, mask), room)) {
        arena_release(arena, mask);
        return false;
    }
    begin_use(arena, mask);
    ASSERT((atomic_load(&arena->used) & mask) == mask);
    return true;
}

bool arena_try_resize(struct superblock *first, unsigned n, int more, struct arena_room *room)
{
    struct arena *arena = arena_of_slot(first);
    ASSERT(arena != NULL && arena->mapping == 0 && arena_span(first) == n);
    unsigned end = (unsigned)(first - arena->slots) + n, after = n + (unsigned)more;
    ASSERT(first->kind == SLOT_SPAN || first->kind == SLOT_SPAN_CHUNK);
    ASSERT(after >= 1 && (int)n + more >= 1);
    if (more > 0 && !grow(arena, end, (unsigned)more, room)) return false;
    if (more > 0 && after >= ARENA_MAYBE_SPARSE) arena_no_huge_pages(arena);
    __atomic_store_n(&first->word, after, __ATOMIC_RELAXED);
    if (more < 0) end_use(arena, end - (unsigned)-more, (unsigned)-more);
    return true;
}

unsigned arena_span(const struct superblock *first)
{
    return (unsigned)__atomic_load_n(&first->word, __ATOMIC_RELAXED);
}

/* --- all of them ------------------------------------------------------------------------------ */

struct arena_held arena_held(void)
{
    return (struct arena_held){arenas.held, arenas.peak, arena_unused(), arenas.returned};
}

void arena_begin_sharing(void) { arenas.shared = true; }

bool arena_has_dirty(void) { return atomic_load_explicit(&arenas.dirty_slots, memory_order_relaxed) != 0; }

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
