/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena_table.h"
#include "arena/huge_pages.h"
#include "arena/reclaim.h"
#include "os/pages.h"
#include "os/rseq.h"

#include <errno.h>
#include <string.h>

/* An object beyond ARENA_SPAN_MAX has a mapping of its own, and so has one that grows and finds no slots
 * behind its own: the OS moves pages faster than a copy.
 *
 * The mapping of a freed object of up to ARENA_SPAN_MAX bytes becomes arenas with dirty slots. So its memory
 * serves objects of each size, and goes back to the OS as that of other slots does. A larger mapping is
 * unmapped at once. */

struct arena *arena_map_large(size_t size, size_t alignment, enum superblock_kind kind, bool *clean)
{
    ASSERT(size != 0 && is_power_of_two(alignment));
    size = align_up(size, PAGE);
    *clean = true;
    if (!arena_make_room(size)) return NULL;
    struct arena *arena = arena_create(size, alignment > ARENA ? alignment : ARENA);
    if (arena == NULL) return NULL;
    bool is_pools = kind == SLOT_SPAN_CHUNK && size > ARENA_SPAN_MAX; /* a smaller one may become arenas */
    pages_name(arena->base, size, is_pools ? PAGES_POOLS : arena_name);
    arena_advise_mapping(arena, size);
    arena_set_mapping(arena, size);
    arena_count_held(size, 0);
    arena_note_wanted();
    ASSERT((uintptr_t)arena->base % alignment == 0);
    arena_slot_set(arena, 0, kind, 1);
    return arena;
}

/* Moves the memory of a span to the beginning of a place, in two steps, since one mapping must come of it:
 * only such a one can be moved again. Where the second step fails, the bytes are copied back. */
static bool lift_pages(char *from, size_t bytes, char *place, size_t size)
{
    char *lifted = pages_lift(from, bytes);
    if (lifted == NULL) {
        pages_unmap(place, size);
        return false;
    }
    if (pages_move(lifted, bytes, place, size)) return true;
    memcpy(from, lifted, bytes);
    pages_unmap(lifted, bytes);
    return false;
}

static struct arena *lift_span(struct superblock *first, size_t bytes, size_t size)
{
    enum superblock_kind kind = (enum superblock_kind)first->kind;
    struct arena *arena = arena_create(size, ARENA);
    if (arena == NULL) return NULL;
    char *place = arena->base;
    pagemap_clear(place, size, arena); /* where the move fails, it may be unmapped, and another's */
    if (!lift_pages(slot_start(first), bytes, place, size)) {
        arena_forget(arena, size);
        return NULL;
    }
    pagemap_enter(place, size, arena); /* does not fail: the leaves are there */
    arena_set_mapping(arena, size);
    arena_count_held(size - bytes, 0);
    arena_slot_set(arena, 0, kind, 1);
    arena_give_lifted(first);
    arena_advise_mapping(arena, size);
    return arena;
}

/* Where there is no rseq an emulator may be below, and qemu-user takes what was lifted for unmapped. */
struct arena *arena_lift_span(struct superblock *first, size_t size)
{
    size_t bytes = arena_span(first) * (size_t)SUPERBLOCK;
    size = align_up(size, PAGE);
    ASSERT(size > bytes && (first->kind == SLOT_SPAN || first->kind == SLOT_SPAN_CHUNK));
    if (cpu.ids == 0 || !arena_make_room(size - bytes)) return NULL;
    gate_enter(&arenas.gate);
    struct arena *arena = lift_span(first, bytes, size);
    gate_leave(&arenas.gate);
    if (arena != NULL) arena_note_wanted();
    return arena;
}

/* Makes claimed slots of a new arena free. The first `dirty` of them have memory. */
static void begin_arena(struct arena *arena, unsigned dirty)
{
    ASSERT(dirty <= ARENA_SLOTS && atomic_load(&arena->used) == UINT64_MAX && arena->heads == 0);
    arena->huge = arena->sparse = arena_mapping_may_be_huge();
    atomic_store(&arena->dirty, dirty != 0 ? arena_slot_mask(0, dirty) : 0);
    atomic_store_explicit(&arena->freed_at, pages_clock(), memory_order_relaxed);
    atomic_fetch_add_explicit(&arenas.dirty_slots, dirty, memory_order_relaxed);
    arena_release(arena, UINT64_MAX);
    atomic_store_explicit(&arenas.latest, arena, memory_order_relaxed);
}

/* Makes arenas of a mapping whose size is a multiple of ARENA, and of which the first `held` bytes have
 * memory. Where there is no struct for an arena, its addresses are unmapped. */
static void split_mapping(struct arena *first, size_t size, size_t held)
{
    char *base = first->base;
    arena_set_mapping(first, 0);
    for (size_t at = 0; at < size; at += ARENA) {
        size_t bytes = held - at < ARENA ? held - at : ARENA;
        struct arena *arena = at == 0 ? first : arena_create_at(base + at, ARENA);
        if (at != 0) arena_count_mapped(0, ARENA); /* which arena_create_at has counted again */
        if (arena != NULL) {
            begin_arena(arena, (unsigned)(bytes / SUPERBLOCK));
        } else {
            pagemap_clear(base + at, ARENA, first);
            pages_unmap(base + at, ARENA);
            arena_count_held(0, bytes);
        }
    }
}

/* Makes the size of a mapping a multiple of ARENA: larger, or else smaller. Returns the size, or 0. */
static size_t round_mapping(struct arena *arena)
{
    size_t size = arena->mapping, up = align_up(size, ARENA), down = align_down(size, ARENA);
    size_t to = up == size || pages_resize(arena->base, size, up) ? up : down;
    if (to == 0) return 0;
    if (to < size) {
        pagemap_clear(arena->base + to, size - to, arena);
        if (!pages_resize(arena->base, size, to)) return 0;
    }
    arena_count_mapped(to, size);
    return to;
}

/* It passes the gate while the mapping has an owner: a fork in between would leave it without one. */
void arena_unmap_large(struct arena *arena)
{
    ASSERT(arena->mapping != 0 && arena->slots[0].kind != SLOT_FREE && pagemap_find(arena->base) == arena);
    gate_enter(&arenas.gate);
    arena->slots[0].kind = SLOT_FREE;
    size_t size = arena->mapping, to = size <= ARENA_SPAN_MAX ? round_mapping(arena) : 0;
    if (to != 0) {
        size_t held = to < size ? to : align_up(size, SUPERBLOCK);
        arena_count_held(held, size);
        split_mapping(arena, to, held);
    } else {
        arena_destroy(arena, size);
        arena_count_held(0, size);
    }
    gate_leave(&arenas.gate);
}

/* Resizes a mapping in place, within its last 4 MiB: the addresses behind may be another's. Those that it
 * gives up leave the pagemap before they are unmapped, after which another thread may enter them. */
static bool resize_in_place(struct arena *arena, size_t size)
{
    size_t old = align_up(arena->mapping, ARENA), new = align_up(size, ARENA);
    ASSERT(arena->mapping != 0 && size != 0);
    if (new > old) return false;
    pagemap_clear(arena->base + new, old - new, arena);
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
    pagemap_clear(arena->base, arena->mapping, arena);
    if (!pages_move(arena->base, arena->mapping, place, size)) {
        pagemap_enter(arena->base, arena->mapping, arena);
        pagemap_clear(place, size, arena); /* the place may be unmapped, and mapped by another thread */
        return false;
    }
    arena_set_base(arena, place);
    ASSERT(pagemap_find(place) == arena && pagemap_find(place + size - 1) == arena);
    return true;
}

bool arena_remap_large(struct arena *arena, size_t size, bool may_move)
{
    ASSERT(arena->mapping != 0 && arena->slots[0].kind != SLOT_FREE && pagemap_find(arena->base) == arena);
    size = align_up(size, PAGE);
    if (size > arena->mapping && !arena_make_room(size - arena->mapping)) return false;
    gate_enter(&arenas.gate);
    bool done = resize_in_place(arena, size) || (may_move && remap_elsewhere(arena, size));
    if (done) {
        arena_count_held(size, arena->mapping);
        arena_note_wanted();
        arena_count_mapped(size, arena->mapping);
        arena_set_mapping(arena, size);
        arena_slot_set(arena, 0, (enum superblock_kind)arena->slots[0].kind, 1);
    }
    gate_leave(&arenas.gate);
    return done;
}
