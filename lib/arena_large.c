#include "arena_state.h"

#include "pages.h"

#include <errno.h>

/* --- mappings -------------------------------------------------------------------------------- */

/* A mapping whose object was freed is kept for the next one of about its size, which spares the OS zeroing
 * it again; like dirty slots it goes back after options.purge_ms. */
enum { KEPT_MAX = 64 * 1024 * 1024 /* bytes in all kept mappings */ };

static void drop_kept(struct arena *arena)
{
    list_remove(&arena->link);
    arenas.kept_bytes -= arena->mapping;
    arena_count_held(0, arena->mapping);
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

static void drop_oldest_kept(void)
{
    struct list_node *oldest = arenas.kept.first;
    while (oldest->next != NULL) oldest = oldest->next;
    drop_kept(LIST_ENTRY(oldest, struct arena, link));
}

void arena_drop_kept(size_t bytes)
{
    size_t before = arenas.held;
    while (arenas.kept_bytes != 0 && before - arenas.held < bytes) drop_oldest_kept();
}

/* One that is most of what may be kept would drive out all others. */
static void keep(struct arena *arena)
{
    if (arena->mapping > KEPT_MAX / 2) {
        arena_count_held(0, arena->mapping);
        arena_destroy(arena, arena->mapping);
        return;
    }
    arena->freed_at = pages_clock();
    arenas.kept_bytes += arena->mapping;
    arena_tell_of_unused();
    list_push(&arenas.kept, &arena->link);
    while (arenas.kept_bytes > KEPT_MAX) drop_oldest_kept();
}

size_t arena_drop_kept_older(uint64_t now, uint64_t min_age)
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
    if (arena == NULL && arena_may_have(size)) {
        arena = arena_create(size, alignment > ARENA ? alignment : ARENA);
        if (arena != NULL) {
            arena_advise_mapping(arena, size);
            arena->mapping = size;
            arena_count_held(size, 0);
        }
    }
    if (arena != NULL) {
        arena->used = 1;
        arena_slot_set(arena, 0, 1, kind);
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
    bool done = size <= arena->mapping || arena_may_have(size - arena->mapping);
    if (done) done = resize_in_place(arena, size) || (may_move && remap_elsewhere(arena, size));
    if (done) {
        arena_count_held(size, arena->mapping);
        arena->mapping = size;
        arena_slot_set(arena, 0, 1, (enum superblock_kind)arena->slots[0].kind);
    }
    lock_give(&arenas.lock);
    return done;
}
