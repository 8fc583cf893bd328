/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena_internal.h"
#include "arena/huge_pages.h"
#include "os/pages.h"

#include <errno.h>

/* --- cached mappings --------------------------------------------------------------------------- */

/* The mapping of a freed object is kept for the next object of about its size, so that the OS need not zero
 * memory for it. Like dirty slots it goes back after options.purge_ms. It is in an entry of `kept`; the
 * thread whose compare-and-swap takes it out owns it. */
enum { KEPT_MAX = 64 * 1024 * 1024 /* bytes in all kept mappings */ };

_Static_assert(KEPT_MAX / ARENA <= ARENA_KEPT, "there is an entry for each");

static struct arena *kept_at(unsigned i) { return atomic_load(&arenas.kept[i]); }

static bool take_out(unsigned i, struct arena *arena)
{
    if (!atomic_compare_exchange_strong(&arenas.kept[i], &arena, NULL)) return false;
    ASSERT(arena->mapping != 0 && atomic_load(&arenas.kept_bytes) >= arena->mapping);
    atomic_fetch_sub_explicit(&arenas.kept_bytes, arena->mapping, memory_order_relaxed);
    return true;
}

/* Unmaps a mapping. The caller passes the gate from before it takes the mapping out: otherwise a fork in
 * between would leave it in the child without an owner. */
static void unmap(struct arena *arena)
{
    ASSERT(arena->mapping != 0 && arena->slots[0].kind == SLOT_FREE);
    size_t size = arena->mapping;
    arena_destroy(arena, size);
    arena_count_held(0, size);
}

/* Returns the mapping that was kept longest, of those at least `min_age` old; -1: none. */
static int oldest_kept(uint64_t now, uint64_t min_age)
{
    int oldest = -1;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < ARENA_KEPT; i++) {
        const struct arena *arena = kept_at(i);
        uint64_t freed_at = arena != NULL ? atomic_load_explicit(&arena->freed_at, memory_order_relaxed) : 0;
        if (arena == NULL || !arena_is_as_old(freed_at, now, min_age) || freed_at >= least) continue;
        oldest = (int)i;
        least = freed_at;
    }
    return oldest;
}

static size_t take_and_unmap(uint64_t now, uint64_t min_age)
{
    int i;
    while ((i = oldest_kept(now, min_age)) >= 0) {
        struct arena *arena = kept_at((unsigned)i);
        if (arena == NULL || !take_out((unsigned)i, arena)) continue;
        size_t bytes = arena->mapping;
        unmap(arena);
        return bytes;
    }
    return 0;
}

/* Unmaps the oldest mapping. Returns its bytes; 0: there is none. */
static size_t drop_oldest(uint64_t now, uint64_t min_age)
{
    if (oldest_kept(now, min_age) < 0) return 0;
    gate_enter(&arenas.gate);
    size_t bytes = take_and_unmap(now, min_age);
    gate_leave(&arenas.gate);
    return bytes;
}

size_t arena_drop_kept(size_t bytes)
{
    size_t dropped = 0, more;
    while (dropped < bytes && (more = drop_oldest(0, 0)) != 0) dropped += more;
    return dropped;
}

size_t arena_drop_kept_older(uint64_t now, uint64_t min_age)
{
    size_t dropped = 0, more;
    while ((more = drop_oldest(now, min_age)) != 0) dropped += more;
    return dropped;
}

static bool put_in(struct arena *arena)
{
    for (unsigned i = 0; i < ARENA_KEPT; i++) {
        struct arena *nothing = NULL;
        if (kept_at(i) == NULL && atomic_compare_exchange_strong(&arenas.kept[i], &nothing, arena))
            return true;
    }
    return false;
}

/* Keeps a mapping. One of more than half of KEPT_MAX is unmapped at once: it would drive out all others. */
static void keep(struct arena *arena)
{
    ASSERT(arena->mapping != 0 && arena->slots[0].kind == SLOT_FREE && pagemap_find(arena->base) == arena);
    if (arena->mapping > KEPT_MAX / 2) {
        gate_enter(&arenas.gate);
        unmap(arena);
        gate_leave(&arenas.gate);
        return;
    }
    atomic_store_explicit(&arena->freed_at, pages_clock(), memory_order_relaxed);
    atomic_fetch_add_explicit(&arenas.kept_bytes, arena->mapping, memory_order_relaxed);
    while (!put_in(arena)) drop_oldest(0, 0);
    while (atomic_load_explicit(&arenas.kept_bytes, memory_order_relaxed) > KEPT_MAX &&
           drop_oldest(0, 0) != 0)
        continue;
}

/* Is a mapping large enough, and at most a quarter too large? It is not the caller's yet: it may be another
 * one the next moment. */
static bool fits(const struct arena *arena, size_t size, size_t alignment)
{
    return arena->mapping >= size && arena->mapping - size <= size / 4 &&
           ((uintptr_t)arena->base & (alignment - 1)) == 0;
}

static int latest_that_fits(size_t size, size_t alignment)
{
    int latest = -1;
    uint64_t most = 0;
    for (unsigned i = 0; i < ARENA_KEPT; i++) {
        const struct arena *arena = kept_at(i);
        if (arena == NULL || !fits(arena, size, alignment)) continue;
        uint64_t freed_at = atomic_load_explicit(&arena->freed_at, memory_order_relaxed);
        if (latest >= 0 && freed_at < most) continue;
        latest = (int)i;
        most = freed_at;
    }
    return latest;
}

static struct arena *take_kept(size_t size, size_t alignment)
{
    int i;
    while ((i = latest_that_fits(size, alignment)) >= 0) {
        struct arena *arena = kept_at((unsigned)i);
        if (arena == NULL || !take_out((unsigned)i, arena)) continue;
        if (fits(arena, size, alignment)) return arena;
        keep(arena); /* between the two looks another thread took it, and put it back with another size */
    }
    return NULL;
}

/* --- mappings ---------------------------------------------------------------------------------- */

struct arena *arena_try_map(size_t size, size_t alignment, enum superblock_kind kind, bool *clean,
                            struct arena_room *room)
{
    ASSERT(size != 0 && is_power_of_two(alignment));
    size = align_up(size, PAGE);
    struct arena *arena = take_kept(size, alignment);
    *clean = arena == NULL;
    if (arena == NULL && arena_has_room(size, room)) {
        arena = arena_create(size, alignment > ARENA ? alignment : ARENA);
        if (arena != NULL) {
            arena_advise_mapping(arena, size);
            arena->mapping = size;
            arena_count_held(size, 0);
        }
    }
    ASSERT(arena == NULL || (arena->mapping >= size && (uintptr_t)arena->base % alignment == 0));
    if (arena != NULL) arena_slot_set(arena, 0, 1, kind);
    return arena;
}

void arena_unmap_large(struct arena *arena)
{
    ASSERT(arena->mapping != 0 && arena->slots[0].kind != SLOT_FREE);
    arena->slots[0].kind = SLOT_FREE;
    keep(arena);
}

/* Resizes a mapping in place. It grows only within its last 4 MiB: the addresses behind may be another's.
 * Addresses that it gives up leave the pagemap first: once they are unmapped, another thread may map and
 * enter them. */
static bool resize_in_place(struct arena *arena, size_t size)
{
    size_t old = align_up(arena->mapping, ARENA), new = align_up(size, ARENA);
    ASSERT(arena->mapping != 0 && size != 0);
    if (new > old) return false;
    pagemap_clear(arena->base + new, old - new);
    if (pages_resize(arena->base, arena->mapping, size)) return true;
    pagemap_enter(arena->base + new, old - new, arena); /* does not fail: the leaves are there */
    return false;
}

static bool remap_elsewhere(struct arena *arena, size_t size)
{
    char *place = pages_map(size, ARENA);
    if (place == NULL) return false;
    if (!pagemap_enter(place, size, arena)) {
        pages_unmap(place, size);
        return false;
    }
    pagemap_clear(arena->base, arena->mapping);
    if (!pages_move(arena->base, arena->mapping, place, size)) {
        pagemap_enter(arena->base, arena->mapping, arena);
        pagemap_clear_of(place, size, arena); /* the place may be unmapped, and mapped by another thread */
        return false;
    }
    arena->base = place;
    ASSERT(pagemap_find(place) == arena && pagemap_find(place + size - 1) == arena);
    return true;
}

bool arena_try_remap(struct arena *arena, size_t size, bool may_move, struct arena_room *room)
{
    ASSERT(arena->mapping != 0 && arena->slots[0].kind != SLOT_FREE && pagemap_find(arena->base) == arena);
    size = align_up(size, PAGE);
    if (size > arena->mapping && !arena_has_room(size - arena->mapping, room)) return false;
    gate_enter(&arenas.gate);
    bool done = resize_in_place(arena, size) || (may_move && remap_elsewhere(arena, size));
    if (done) {
        arena_count_held(size, arena->mapping);
        arena_count_mapped(size, arena->mapping);
        arena->mapping = size;
        arena_slot_set(arena, 0, 1, (enum superblock_kind)arena->slots[0].kind);
    }
    gate_leave(&arenas.gate);
    return done;
}
