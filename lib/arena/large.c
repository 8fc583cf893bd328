/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/large.h"

#include "base/probe.h"
#include "os/pages.h"

#include <errno.h>
#include <string.h>

static void *alloc_mapping(size_t size, size_t alignment, enum superblock_kind kind, bool *clean)
{
    ASSERT(size != 0 && is_power_of_two(alignment));
    if (size > SIZE_LIMIT - ARENA || alignment > SIZE_LIMIT / 2) {
        errno = ENOMEM;
        return NULL;
    }
    struct arena *arena = arena_map_large(size, alignment, kind, clean);
    return arena != NULL ? arena->base : NULL;
}

static unsigned slots_for(size_t size) { return (unsigned)((size + SUPERBLOCK - 1) / SUPERBLOCK); }

void *large_alloc(size_t size, size_t alignment, bool is_chunk, bool *zeroed)
{
    ASSERT(is_power_of_two(alignment));
    enum superblock_kind kind = is_chunk ? SLOT_SPAN_CHUNK : SLOT_SPAN;
    bool clean = true;
    void *object;
    size = size != 0 ? size : 1;
    if (size > ARENA_SPAN_MAX || alignment > ARENA) {
        object = alloc_mapping(size, alignment, kind, &clean);
    } else {
        unsigned step = alignment > SUPERBLOCK ? (unsigned)(alignment / SUPERBLOCK) : 1, n = slots_for(size);
        struct superblock *first = arena_take_span(n, step, kind, ARENA_SPAN, &clean);
        object = first != NULL ? slot_start(first) : NULL;
    }
    ASSERT(object == NULL || ((uintptr_t)object & (alignment - 1)) == 0);
    ASSERT(object == NULL || large_starts_at(pagemap_find(object), object));
    if (zeroed != NULL) *zeroed = clean;
    PROBE(large_alloc, object, size, kind);
    return object;
}

static bool is_large(const struct superblock *slot)
{
    return slot->kind == SLOT_SPAN || slot->kind == SLOT_SPAN_CHUNK;
}

bool large_starts_at(struct arena *arena, const void *pointer)
{
    const struct superblock *slot = arena->mapping != 0 ? &arena->slots[0] : arena_slot(arena, pointer);
    return is_large(slot) && slot_start(slot) == pointer;
}

void large_free(struct arena *arena, void *object)
{
    ASSERT(large_starts_at(arena, object));
    PROBE(large_free, object, large_size(arena, object));
    if (arena->mapping != 0) {
        arena_unmap_large(arena);
    } else {
        arena_give_span(arena_slot(arena, object));
    }
    arena_purge_after_free();
}

size_t large_size(struct arena *arena, const void *object)
{
    return large_bytes(arena, arena_slot(arena, object));
}

bool large_resize(struct arena *arena, void *object, size_t size)
{
    ASSERT(large_starts_at(arena, object));
    if (arena->mapping != 0) {
        return size > ARENA && size <= SIZE_LIMIT - ARENA &&
               (align_up(size, PAGE) == arena->mapping || arena_remap_large(arena, size, false));
    }
    if (size > ARENA_SPAN_MAX || size <= LARGE_LEAST) return false;
    struct superblock *first = arena_slot(arena, object);
    unsigned n = arena_span(first), want = slots_for(size);
    if (want == n) return true;
    bool done = arena_resize(first, n, (int)want - (int)n);
    if (want < n) {
        size_t keep = align_up(size, PAGE), room = want * (size_t)SUPERBLOCK;
        if (keep < room - room / 4) /* else the memory behind it is little beside its own */
            pages_purge((char *)object + keep, room - keep);
        arena_purge_after_free();
    }
    return done;
}

/* An object that has outgrown its span moves to a mapping beyond 4 MiB, whose pages move from then on. But
 * where unused slots have the memory, a copy to these costs less than the page faults of a mapping. */
static bool is_to_be_mapping(size_t size)
{
    return size > ARENA_SPAN_MAX || (size > ARENA && !arena_has_unused(size));
}

static void *place_to_grow(size_t size, enum superblock_kind kind)
{
    bool clean;
    if (is_to_be_mapping(size)) return alloc_mapping(size, 1, kind, &clean);
    struct superblock *first = arena_take_span(slots_for(size), 1, kind, ARENA_GROWS, &clean);
    return first != NULL ? slot_start(first) : NULL;
}

static void *grow_elsewhere(struct arena *arena, void *object, size_t size)
{
    size_t now = large_size(arena, object);
    if (size <= now) return NULL;
    if (is_to_be_mapping(size)) {
        struct arena *mapping = arena_lift_span(arena_slot(arena, object), size);
        if (mapping != NULL) return mapping->base;
    }
    void *place = place_to_grow(size, (enum superblock_kind)arena_slot(arena, object)->kind);
    if (place == NULL) return NULL;
    memcpy(place, object, now);
    large_free(arena, object);
    return place;
}

void *large_move(struct arena *arena, void *object, size_t size)
{
    ASSERT(large_starts_at(arena, object));
    if (size > SIZE_LIMIT - ARENA) return NULL;
    if (arena->mapping == 0) return grow_elsewhere(arena, object, size);
    return size > ARENA && arena_remap_large(arena, size, true) ? arena->base : NULL;
}

struct large_totals large_totals(void)
{
    struct large_totals totals = {0, 0};
    for (const struct arena *arena = arena_first(); arena != NULL; arena = arena->next) {
        unsigned slots = arena->base == NULL ? 0 : arena->mapping != 0 ? 1 : ARENA_SLOTS;
        for (unsigned i = 0; i < slots; i++) {
            if (!is_large(&arena->slots[i])) continue;
            totals.objects++;
            totals.bytes += large_bytes(arena, &arena->slots[i]);
        }
    }
    return totals;
}
