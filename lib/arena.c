#include "arena.h"

#include "cgroup.h"
#include "lock.h"
#include "options.h"
#include "pages.h"
#include "probe.h"

#include <errno.h>

struct arena_guesses arena_guesses;

static struct {
    struct lock lock;
    struct list partial; /* arenas with a free slot */
    struct list spare;   /* structs without memory */
    struct list kept;    /* mappings without an object, the latest freed first */
    size_t kept_bytes;
    _Atomic(struct arena *) all;
    size_t held, peak;
    size_t near; /* bytes held that are near the limit on memory, or enough to look for one */
    bool limit_is_known;
    size_t dirty_slots;
    uint64_t purged_at;
} arenas = {.near = 16 * 1024 * 1024};

/* 1: a thread sleeps until there is unused memory. */
static _Atomic uint32_t arena_watched;

static size_t purge_older(uint64_t now, uint64_t min_age);
static size_t drop_kept_older(uint64_t now, uint64_t min_age);

/* --- arenas ---------------------------------------------------------------------------------- */

static void count_held(size_t add, size_t sub)
{
    arenas.held += add;
    arenas.held -= sub;
    if (arenas.held > arenas.peak) arenas.peak = arenas.held;
}

/* --- a limit on memory ----------------------------------------------------------------------- */

static void know_limit(size_t bytes)
{
    arenas.near = bytes - bytes / 8;
    arenas.limit_is_known = true;
}

void arena_limit(size_t bytes)
{
    lock_take(&arenas.lock);
    know_limit(bytes);
    lock_give(&arenas.lock);
}

static bool is_near(size_t more) { return more != 0 && arenas.held + more > arenas.near; }

/* When `more` bytes would come near the limit: what nobody uses goes back. May they be had? */
static COLD bool make_room(size_t more)
{
    if (!arenas.limit_is_known)
        know_limit(options.memory_limit == LIMIT_IGNORE ? SIZE_MAX : cgroup_mine()->memory);
    if (!is_near(more)) return true;
    uint64_t now = pages_clock();
    purge_older(now, 0);
    drop_kept_older(now, 0);
    if (options.memory_limit != LIMIT_REFUSE || !is_near(more)) return true;
    errno = ENOMEM;
    return false;
}

static bool may_have(size_t more) { return LIKELY(!is_near(more)) || make_room(more); }

/* --- memory and structs ----------------------------------------------------------------------- */

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

static void arena_destroy(struct arena *arena, size_t size)
{
    PROBE(arena_unmap, arena->base, size);
    map_clear(arena->base, size);
    pages_unmap(arena->base, size);
    arena->base = NULL;
    arena->mapping = 0;
    arena->huge = false;
    list_push(&arenas.spare, &arena->link);
}

/* --- huge pages ------------------------------------------------------------------------------- */

/* With thp=grown they are for arenas of superblocks, in programs that hold much already, and until something
 * in the arena goes back to the OS: the kernel would fill the hole again. Larger objects have none: they may
 * be tables and buffers of which little is ever touched. */
enum { GROWN = 32 * 1024 * 1024 /* bytes held */, MAYBE_SPARSE = 4 /* slots of an object */ };

static void no_huge_pages(struct arena *arena)
{
    if (!arena->huge) return;
    arena->huge = false;
    pages_huge(arena->base, ARENA, false);
}

/* An arena was made, for an object of n slots first; or a mapping, with 0. */
static void advise(struct arena *arena, size_t size, unsigned n)
{
    bool grown = options.thp == THP_GROWN;
    if (options.thp == THP_SYSTEM || (grown && n == 0)) return;
    arena->huge = grown && n < MAYBE_SPARSE && arenas.held >= GROWN;
    pages_huge(arena->base, size, arena->huge || options.thp == THP_ALWAYS);
}

/* Memory, a struct and the map's entries, or nothing of them. */
static struct arena *arena_create(size_t size, size_t alignment)
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

static uint64_t slot_mask(unsigned first, unsigned n)
{
    return (n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX) << first;
}

/* Bit i of the result: slots i to i + n - 1 are all set in free, and i is a multiple of alignment. */
static uint64_t runs_of(uint64_t free, unsigned n, unsigned alignment)
{
    while (n > 1) {
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

/* An arena with such a run, and where: dirty slots first, which the OS has not to fill again. */
static struct arena *find_run(unsigned n, unsigned alignment, unsigned *first)
{
    struct arena *found = NULL;
    for (struct list_node *node = arenas.partial.first; node != NULL; node = node->next) {
        struct arena *arena = LIST_ENTRY(node, struct arena, link);
        uint64_t dirty = arenas.dirty_slots >= n ? runs_of(arena->dirty, n, alignment) : 0;
        uint64_t runs = dirty != 0 || found != NULL ? dirty : runs_of(~arena->used, n, alignment);
        if (runs == 0) continue;
        found = arena;
        *first = (unsigned)__builtin_ctzll(runs);
        if (dirty != 0 || arenas.dirty_slots < n) break;
    }
    return found;
}

/* The same, or a new arena. What comes first by way of room may unmap the arena that was found. */
static struct arena *arena_with_run(unsigned n, unsigned alignment, unsigned *first)
{
    struct arena *arena = find_run(n, alignment, first);
    uint64_t dirty = arena != NULL ? arena->dirty & slot_mask(*first, n) : 0;
    size_t more = (n - (unsigned)__builtin_popcountll(dirty)) * (size_t)SUPERBLOCK;
    if (UNLIKELY(is_near(more))) {
        if (!make_room(more)) return NULL;
        arena = find_run(n, alignment, first);
    }
    if (arena == NULL && (arena = arena_create(ARENA, ARENA)) != NULL) {
        *first = 0;
        advise(arena, ARENA, n);
        list_push(&arenas.partial, &arena->link);
    }
    return arena;
}

static bool mark_used(struct arena *arena, unsigned first, unsigned n)
{
    uint64_t mask = slot_mask(first, n), dirty = arena->dirty & mask;
    unsigned dirty_count = (unsigned)__builtin_popcountll(dirty);
    arena->used |= mask;
    arena->dirty &= ~mask;
    arenas.dirty_slots -= dirty_count;
    count_held((n - dirty_count) * (size_t)SUPERBLOCK, 0);
    if (arena->used == UINT64_MAX) list_remove(&arena->link);
    return dirty_count == 0;
}

static void set_tails(struct superblock *slot, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        slot[i].kind = SLOT_TAIL;
        slot[i].word = i;
    }
}

static struct superblock *slot_set(struct arena *arena, unsigned i, unsigned n, enum superblock_kind kind)
{
    struct superblock *slot = &arena->slots[i];
    slot->origin = arena->base + (size_t)i * SUPERBLOCK - BLOCK_BIAS;
    slot->kind = (uint8_t)kind;
    slot->word = n;
    set_tails(slot, 1, n);
    return slot;
}

struct superblock *arena_take(unsigned n, unsigned alignment, enum superblock_kind kind, bool *clean)
{
    unsigned first = 0;
    struct superblock *slot = NULL;
    lock_take(&arenas.lock);
    struct arena *arena = arena_with_run(n, alignment, &first);
    if (arena != NULL) {
        if (n >= MAYBE_SPARSE) no_huge_pages(arena);
        *clean = mark_used(arena, first, n);
        slot = slot_set(arena, first, n, kind);
    }
    lock_give(&arenas.lock);
    return slot;
}

static struct arena *arena_of_slot(const struct superblock *slot) { return map_find(slot_start(slot)); }

static void tell_of_unused(void)
{
    if (LIKELY(atomic_load_explicit(&arena_watched, memory_order_relaxed) == 0)) return;
    atomic_store(&arena_watched, 0);
    lock_wake_sleeper(&arena_watched);
}

static void mark_free(struct arena *arena, unsigned first, unsigned n)
{
    if (arena->used == UINT64_MAX) list_push(&arenas.partial, &arena->link);
    uint64_t mask = slot_mask(first, n);
    arena->used &= ~mask;
    arena->dirty |= mask;
    arena->freed_at = pages_clock();
    arenas.dirty_slots += n;
    tell_of_unused();
    for (unsigned i = first; i < first + n; i++) {
        arena->slots[i].kind = SLOT_FREE;
        arena->slots[i].inverse = 0;
    }
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
               (arena->used & slot_mask(end, (unsigned)more)) == 0 && may_have((size_t)more * SUPERBLOCK)) {
        if (n + (unsigned)more >= MAYBE_SPARSE) no_huge_pages(arena);
        mark_used(arena, end, (unsigned)more);
        set_tails(first, n, n + (unsigned)more);
        done = true;
    }
    if (done) first->word = n + (unsigned)more;
    lock_give(&arenas.lock);
    return done;
}

unsigned arena_span(const struct superblock *first) { return (unsigned)first->word; }

struct superblock *arena_head(struct arena *arena, const void *pointer)
{
    struct superblock *slot = arena_slot(arena, pointer);
    if (slot->kind != SLOT_TAIL) return slot;
    unsigned behind = (unsigned)slot->word;
    return behind <= (unsigned)(slot - arena->slots) ? slot - behind : slot;
}

/* --- mappings -------------------------------------------------------------------------------- */

/* A mapping whose object was freed is kept for the next one of about its size, which spares the OS zeroing
 * it again; like dirty slots it goes back after options.purge_ms. */
enum { KEPT_MAX = 64 * 1024 * 1024 /* bytes in all kept mappings */ };

static void drop_kept(struct arena *arena)
{
    list_remove(&arena->link);
    arenas.kept_bytes -= arena->mapping;
    count_held(0, arena->mapping);
    arena_destroy(arena, arena->mapping);
}

/* One that is large enough and at most a quarter too large; the latest freed first. */
static struct arena *take_kept(size_t size, size_t alignment)
{
    for (struct list_node *node = arenas.kept.first; node != NULL; node = node->next) {
        struct arena *arena = LIST_ENTRY(node, struct arena, link);
        if (arena->mapping < size || arena->mapping - size > size / 4) continue;
        if (((uintptr_t)arena->base & (alignment - 1)) != 0) continue;
        list_remove(node);
        arenas.kept_bytes -= arena->mapping;
        return arena;
    }
    return NULL;
}

/* One that is most of what may be kept would drive out all others. */
static void keep(struct arena *arena)
{
    if (arena->mapping > KEPT_MAX / 2) {
        count_held(0, arena->mapping);
        arena_destroy(arena, arena->mapping);
        return;
    }
    arena->freed_at = pages_clock();
    arenas.kept_bytes += arena->mapping;
    tell_of_unused();
    list_push(&arenas.kept, &arena->link);
    while (arenas.kept_bytes > KEPT_MAX) {
        struct list_node *oldest = arenas.kept.first;
        while (oldest->next != NULL) oldest = oldest->next;
        drop_kept(LIST_ENTRY(oldest, struct arena, link));
    }
}

static size_t drop_kept_older(uint64_t now, uint64_t min_age)
{
    size_t before = arenas.kept_bytes;
    struct list_node *next;
    for (struct list_node *node = arenas.kept.first; node != NULL; node = next) {
        struct arena *arena = LIST_ENTRY(node, struct arena, link);
        next = node->next;
        if (now - arena->freed_at >= min_age) drop_kept(arena);
    }
    return before - arenas.kept_bytes;
}

struct arena *arena_map_large(size_t size, size_t alignment, enum superblock_kind kind, bool *clean)
{
    size = align_up(size, PAGE);
    lock_take(&arenas.lock);
    struct arena *arena = take_kept(size, alignment);
    *clean = arena == NULL;
    if (arena == NULL && may_have(size)) {
        arena = arena_create(size, alignment > ARENA ? alignment : ARENA);
        if (arena != NULL) {
            advise(arena, size, 0);
            arena->mapping = size;
            count_held(size, 0);
        }
    }
    if (arena != NULL) {
        arena->used = 1;
        slot_set(arena, 0, 1, kind);
    }
    lock_give(&arenas.lock);
    return arena;
}

void arena_unmap_large(struct arena *arena)
{
    lock_take(&arenas.lock);
    arena->slots[0].kind = SLOT_FREE;
    arena->used = 0;
    keep(arena);
    lock_give(&arenas.lock);
    arena_purge_if_due();
}

/* Growth stays within the last 4 MiB that are ours: what follows may be another's. */
static bool resize_in_place(struct arena *arena, size_t size)
{
    size_t old = align_up(arena->mapping, ARENA), new = align_up(size, ARENA);
    if (new > old || !pages_resize(arena->base, arena->mapping, size)) return false;
    map_clear(arena->base + new, old - new);
    return true;
}

static bool remap_elsewhere(struct arena *arena, size_t size)
{
    char *place = pages_map(size, ARENA);
    if (place == NULL) return false;
    bool entered = map_enter(place, size, arena);
    if (!entered || !pages_move(arena->base, arena->mapping, place, size)) {
        map_clear(place, size);
        if (!entered) pages_unmap(place, size); /* else it may be gone, and by now another's */
        return false;
    }
    map_clear(arena->base, arena->mapping);
    arena->base = place;
    return true;
}

bool arena_remap_large(struct arena *arena, size_t size, bool may_move)
{
    size = align_up(size, PAGE);
    lock_take(&arenas.lock);
    bool done = size <= arena->mapping || may_have(size - arena->mapping);
    if (done) done = resize_in_place(arena, size) || (may_move && remap_elsewhere(arena, size));
    if (done) {
        count_held(size, arena->mapping);
        arena->mapping = size;
        slot_set(arena, 0, 1, (enum superblock_kind)arena->slots[0].kind);
    }
    lock_give(&arenas.lock);
    return done;
}

/* --- back to the OS -------------------------------------------------------------------------- */

static size_t purge_slots(struct arena *arena)
{
    size_t bytes = 0;
    no_huge_pages(arena);
    for (uint64_t left = arena->dirty; left != 0;) {
        unsigned first = (unsigned)__builtin_ctzll(left);
        uint64_t from = ~(left >> first);
        unsigned n = from != 0 ? (unsigned)__builtin_ctzll(from) : 64;
        uint64_t mask = slot_mask(first, n);
        left &= ~mask;
        if (!pages_purge(arena->base + (size_t)first * SUPERBLOCK, (size_t)n * SUPERBLOCK)) continue;
        arena->dirty &= ~mask;
        bytes += (size_t)n * SUPERBLOCK;
    }
    arenas.dirty_slots -= bytes / SUPERBLOCK;
    count_held(0, bytes);
    return bytes;
}

/* An arena without a used slot is unmapped, but for the only one: the next slot will want it, unless all
 * is asked for. */
static bool may_unmap(const struct arena *arena, bool all)
{
    bool only = arenas.partial.first == &arena->link && arena->link.next == NULL;
    return arena->used == 0 && arena->dirty == 0 && (all || !only);
}

static size_t purge_older(uint64_t now, uint64_t min_age)
{
    size_t bytes = 0;
    struct list_node *next;
    for (struct list_node *node = arenas.partial.first; node != NULL; node = next) {
        struct arena *arena = LIST_ENTRY(node, struct arena, link);
        next = node->next;
        if (now - arena->freed_at < min_age) continue;
        if (arena->dirty != 0) bytes += purge_slots(arena);
        if (!may_unmap(arena, min_age == 0)) continue;
        list_remove(node);
        arena_destroy(arena, ARENA);
    }
    return bytes;
}

size_t arena_purge(uint64_t min_age)
{
    lock_take(&arenas.lock);
    uint64_t now = pages_clock();
    size_t bytes = purge_older(now, min_age) + drop_kept_older(now, min_age);
    lock_give(&arenas.lock);
    if (bytes != 0) PROBE(purge, bytes, min_age);
    return bytes;
}

/* Who frees looks at `watched` under the lock, under which this looks at what there is. */
void arena_wait_for_unused(void)
{
    atomic_store(&arena_watched, 1);
    while (arena_held().unused == 0) {
        lock_sleep(&arena_watched, 1);
        atomic_store(&arena_watched, 1);
    }
    atomic_store(&arena_watched, 0);
}

void arena_purge_if_due(void)
{
    uint64_t now = pages_clock(), delay = options.purge_ms;
    size_t near = __atomic_load_n(&arenas.near, __ATOMIC_RELAXED);
    if (arenas.limit_is_known && __atomic_load_n(&arenas.held, __ATOMIC_RELAXED) > near - near / 4)
        delay /= 8;
    if (now - __atomic_load_n(&arenas.purged_at, __ATOMIC_RELAXED) < delay) return;
    __atomic_store_n(&arenas.purged_at, now, __ATOMIC_RELAXED);
    arena_purge(delay);
}

struct arena_held arena_held(void)
{
    lock_take(&arenas.lock);
    struct arena_held held = {arenas.held, arenas.peak, arenas.dirty_slots * SUPERBLOCK + arenas.kept_bytes};
    lock_give(&arenas.lock);
    return held;
}

struct arena *arena_first(void) { return atomic_load_explicit(&arenas.all, memory_order_acquire); }

void arena_fork_prepare(void) { lock_for_fork(&arenas.lock); }

void arena_fork_parent(void) { lock_after_fork(&arenas.lock); }

void arena_fork_child(void) { lock_reset(&arenas.lock); }
