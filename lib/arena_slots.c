#include "arena_state.h"

#include "pages.h"
#include "probe.h"

#include <errno.h>

struct arena_guesses arena_guesses;
struct arenas arenas = {.near = ARENA_LOOK_FOR_LIMIT};

/* --- arenas ---------------------------------------------------------------------------------- */

void arena_count_held(size_t add, size_t sub)
{
    __atomic_store_n(&arenas.held, arenas.held + add - sub, __ATOMIC_RELAXED);
    if (arenas.held > arenas.peak) arenas.peak = arenas.held;
}

static struct arena *struct_take(void)
{
    struct list_node *node = list_pop(&arenas.spare);
    if (node != NULL) return LIST_ENTRY(node, struct arena, link);
    struct arena *arena = pages_metadata(sizeof *arena);
    if (arena == NULL) return NULL;
    arena->next = atomic_load_explicit(&arenas.all, memory_order_relaxed);
    atomic_store_explicit(&arenas.all, arena, memory_order_release);
    return arena;
}

void arena_destroy(struct arena *arena, size_t size)
{
    PROBE(arena_unmap, arena->base, size);
    map_clear(arena->base, size);
    pages_unmap(arena->base, size);
    arena->base = NULL;
    arena->mapping = 0;
    arena->huge = arena->sparse = false;
    list_push(&arenas.spare, &arena->link);
}

struct arena *arena_create(size_t size, size_t alignment)
{
    struct arena *arena = struct_take();
    if (arena == NULL) return NULL;
    arena->base = pages_map(size, alignment);
    if (arena->base != NULL && (uintptr_t)arena->base + size <= (uintptr_t)1 << MAP_ADDRESS_BITS) {
        if (map_enter(arena->base, size, arena)) {
            PROBE(arena_map, arena->base, size);
            return arena;
        }
    }
    if (arena->base != NULL) pages_unmap(arena->base, size);
    list_push(&arenas.spare, &arena->link);
    errno = ENOMEM;
    return NULL;
}

/* --- slots ----------------------------------------------------------------------------------- */

/* Bit i of the result: slots i to i + n - 1 are all set in free, and i is a multiple of alignment. */
static uint64_t runs_of(uint64_t free, unsigned n, unsigned alignment)
{
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

/* What is sparse leaves pages untouched, which huge pages would not: it takes no clean slot where there may
 * be some. Nor does what could have huge pages take one of an arena that was made for what is sparse. */
static bool suits(const struct arena *arena, unsigned n, bool sparse)
{
    if (sparse) return !arena->huge;
    return !arena->sparse || n >= ARENA_MAYBE_SPARSE;
}

/* The runs, unless none is that long: *longest, which no run is longer than, remembers that. */
static uint64_t runs_in(uint64_t free, unsigned n, unsigned alignment, uint8_t *longest)
{
    if (n > *longest) return 0;
    uint64_t runs = runs_of(free, n, alignment);
    if (runs == 0 && alignment == 1) *longest = (uint8_t)(n - 1);
    return runs;
}

/* An arena with such a run, and where: dirty slots first, which the OS has not to fill again. */
static struct arena *find_run(unsigned n, unsigned alignment, bool sparse, unsigned *first)
{
    struct arena *found = NULL;
    bool any_dirty = arenas.dirty_slots >= n;
    for (struct list_node *node = arenas.partial.first; node != NULL; node = node->next) {
        struct arena *arena = LIST_ENTRY(node, struct arena, link);
        uint64_t dirty = any_dirty ? runs_in(arena->dirty, n, alignment, &arena->longest_dirty) : 0;
        uint64_t runs = dirty;
        if (dirty == 0 && found == NULL && suits(arena, n, sparse))
            runs = runs_in(~arena->used, n, alignment, &arena->longest_free);
        if (runs == 0) continue;
        found = arena;
        *first = (unsigned)__builtin_ctzll(runs);
        if (dirty != 0 || !any_dirty) break;
    }
    return found;
}

/* The same, or a new arena. What comes first by way of room may unmap the arena that was found. */
static struct arena *arena_with_run(unsigned n, unsigned alignment, bool sparse, unsigned *first)
{
    struct arena *arena = find_run(n, alignment, sparse, first);
    uint64_t dirty = arena != NULL ? arena->dirty & arena_slot_mask(*first, n) : 0;
    size_t more = (n - (unsigned)__builtin_popcountll(dirty)) * (size_t)SUPERBLOCK;
    if (UNLIKELY(arena_needs_room(more))) {
        if (!arena_make_room(more)) return NULL;
        arena = find_run(n, alignment, sparse, first);
    }
    if (arena == NULL && (arena = arena_create(ARENA, ARENA)) != NULL) {
        *first = 0;
        arena->longest_dirty = arena->longest_free = ARENA_SLOTS;
        arena_advise(arena, n, sparse);
        list_push(&arenas.partial, &arena->link);
    }
    return arena;
}

/* They are read without the lock, by arena_head. */
static void set_bits(uint64_t *bits, uint64_t to) { __atomic_store_n(bits, to, __ATOMIC_RELAXED); }

static bool mark_used(struct arena *arena, unsigned first, unsigned n)
{
    uint64_t mask = arena_slot_mask(first, n), dirty = arena->dirty & mask;
    unsigned dirty_count = (unsigned)__builtin_popcountll(dirty);
    set_bits(&arena->used, arena->used | mask);
    arena->dirty &= ~mask;
    arenas.dirty_slots -= dirty_count;
    arena_count_held((n - dirty_count) * (size_t)SUPERBLOCK, 0);
    if (arena->used == UINT64_MAX) list_remove(&arena->link);
    return dirty_count == 0;
}

struct superblock *arena_slot_set(struct arena *arena, unsigned i, unsigned n, enum superblock_kind kind)
{
    struct superblock *slot = &arena->slots[i];
    slot->origin = arena->base + (size_t)i * SUPERBLOCK - BLOCK_BIAS;
    slot->kind = (uint8_t)kind;
    slot->word = n;
    return slot;
}

static struct superblock *take(unsigned n, unsigned alignment, enum superblock_kind kind, bool sparse,
                               bool *clean)
{
    unsigned first = 0;
    struct superblock *slot = NULL;
    lock_take(&arenas.lock);
    struct arena *arena = arena_with_run(n, alignment, sparse, &first);
    if (arena != NULL) {
        if (n >= ARENA_MAYBE_SPARSE) arena_no_huge_pages(arena);
        *clean = mark_used(arena, first, n);
        set_bits(&arena->heads, arena->heads | arena_slot_mask(first, 1));
        slot = arena_slot_set(arena, first, n, kind);
    }
    lock_give(&arenas.lock);
    return slot;
}

struct superblock *arena_take(unsigned n, unsigned alignment, enum superblock_kind kind, bool *clean)
{
    return take(n, alignment, kind, false, clean);
}

struct superblock *arena_take_slot(enum superblock_kind kind, bool sparse, bool *clean)
{
    return take(1, 1, kind, sparse, clean);
}

static struct arena *arena_of_slot(const struct superblock *slot) { return map_find(slot_start(slot)); }

/* The next run is looked for here first, where it is most likely to be, and in the cache. Of the descriptors
 * only the first one's is not that of a free slot. */
static void mark_free(struct arena *arena, unsigned first, unsigned n)
{
    if (list_holds(&arena->link)) list_remove(&arena->link);
    list_push(&arenas.partial, &arena->link);
    uint64_t mask = arena_slot_mask(first, n);
    set_bits(&arena->used, arena->used & ~mask);
    set_bits(&arena->heads, arena->heads & ~mask);
    arena->dirty |= mask;
    arena->longest_dirty = arena->longest_free = ARENA_SLOTS;
    arena->freed_at = pages_clock();
    arenas.dirty_slots += n;
    arena_tell_of_unused();
    arena->slots[first].kind = SLOT_FREE;
    arena->slots[first].inverse = 0;
}

void arena_give(struct superblock *first, unsigned n)
{
    struct arena *arena = arena_of_slot(first);
    lock_take(&arenas.lock);
    mark_free(arena, (unsigned)(first - arena->slots), n);
    lock_give(&arenas.lock);
    arena_purge_if_due();
}

bool arena_resize(struct superblock *first, unsigned n, int more)
{
    struct arena *arena = arena_of_slot(first);
    unsigned end = (unsigned)(first - arena->slots) + n;
    bool done = more <= 0;
    lock_take(&arenas.lock);
    if (more < 0) {
        mark_free(arena, end - (unsigned)-more, (unsigned)-more);
    } else if (more > 0 && end + (unsigned)more <= ARENA_SLOTS &&
               (arena->used & arena_slot_mask(end, (unsigned)more)) == 0 &&
               arena_may_have((size_t)more * SUPERBLOCK)) {
        if (n + (unsigned)more >= ARENA_MAYBE_SPARSE) arena_no_huge_pages(arena);
        mark_used(arena, end, (unsigned)more);
        done = true;
    }
    if (done) first->word = n + (unsigned)more;
    lock_give(&arenas.lock);
    return done;
}

unsigned arena_span(const struct superblock *first) { return (unsigned)first->word; }

struct arena_held arena_held(void)
{
    lock_take(&arenas.lock);
    struct arena_held held = {arenas.held, arenas.peak, arena_unused()};
    lock_give(&arenas.lock);
    return held;
}

struct arena *arena_first(void) { return atomic_load_explicit(&arenas.all, memory_order_acquire); }

void arena_freeze(void) { lock_take(&arenas.lock); }

void arena_thaw(void) { lock_give(&arenas.lock); }

void arena_fork_prepare(void) { lock_for_fork(&arenas.lock); }

void arena_fork_parent(void) { lock_after_fork(&arenas.lock); }

void arena_fork_child(void) { lock_reset(&arenas.lock); }
