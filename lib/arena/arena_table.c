/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena_table.h"

#include "arena/chunk_map.h"
#include "base/probe.h"
#include "os/metadata.h"
#include "os/pages.h"

#include <errno.h>

struct arenas arenas = {.gate = GATE_OF_RANK(RANK_ARENAS, LOCK_GATE_2), .near = ARENA_LOOK_FOR_LIMIT};

/* --- structs ---------------------------------------------------------------------------------- */

static struct arena *take_spare_struct(struct arena_group *group)
{
    uint64_t spare;
    while ((spare = atomic_load(&group->spare)) != 0) {
        unsigned i = (unsigned)__builtin_ctzll(spare);
        uint64_t bit = (uint64_t)1 << i;
        if ((atomic_fetch_and(&group->spare, ~bit) & bit) != 0) return atomic_load(&group->arenas[i]);
    }
    return NULL;
}

/* Makes a struct in a group, if the group has room. Without memory the group is as it was. */
static struct arena *make_in(struct arena_group *group)
{
    uint64_t made;
    while ((made = atomic_load(&group->made)) != UINT64_MAX) {
        unsigned i = (unsigned)__builtin_ctzll(~made);
        uint64_t bit = (uint64_t)1 << i;
        if ((atomic_fetch_or(&group->made, bit) & bit) != 0) continue;
        struct arena *arena = metadata_alloc(sizeof *arena);
        if (arena == NULL) {
            atomic_fetch_and(&group->made, ~bit);
            return NULL;
        }
        arena->group = group;
        ASSERT(arena->base == NULL && atomic_load(&group->arenas[i]) == NULL);
        arena->index = (uint8_t)i;
        atomic_store(&arena->used, UINT64_MAX);
        atomic_store(&group->arenas[i], arena);
        struct arena *first = atomic_load(&arenas.all);
        do arena->next = first;
        while (!atomic_compare_exchange_weak(&arenas.all, &first, arena));
        return arena;
    }
    return NULL;
}

/* Returns the group behind another; makes it if need be. If two threads each make one, the list gets both. */
static struct arena_group *group_after(struct arena_group *group)
{
    struct arena_group *next = atomic_load(&group->next);
    if (next != NULL) return next;
    struct arena_group *more = metadata_alloc(sizeof *more), *nobodys = NULL;
    if (more == NULL) return atomic_load(&group->next);
    struct arena_group *last = group;
    while (!atomic_compare_exchange_strong(&last->next, &nobodys, more)) {
        last = nobodys;
        nobodys = NULL;
    }
    return atomic_load(&group->next);
}

static struct arena *struct_take(void)
{
    struct arena *arena = NULL;
    for (struct arena_group *group = &arenas.groups; group != NULL && arena == NULL;
         group = atomic_load(&group->next))
        arena = take_spare_struct(group);
    for (struct arena_group *group = &arenas.groups; group != NULL && arena == NULL;) {
        arena = make_in(group);
        if (arena == NULL && atomic_load(&group->made) != UINT64_MAX) break; /* no memory for a struct */
        if (arena == NULL) group = group_after(group);
    }
    return arena;
}

static void struct_give(struct arena *arena)
{
    ASSERT(atomic_load(&arena->used) == UINT64_MAX && atomic_load(&arena->heads) == 0);
    ASSERT(atomic_load(&arena->dirty) == 0 && arena->slots[0].kind == SLOT_FREE);
    ASSERT((atomic_load(&arena->group->spare) & arena_bit(arena)) == 0);
    arena_set_base(arena, NULL);
    arena_set_mapping(arena, 0);
    arena->huge = arena->sparse = false;
    atomic_fetch_or(&arena->group->spare, arena_bit(arena));
}

const char *arena_name = PAGES_POOLS;

/* --- memory ----------------------------------------------------------------------------------- */

void arena_forget(struct arena *arena, size_t size)
{
    arena_count_mapped(0, size);
    struct_give(arena);
}

bool arena_destroy(struct arena *arena, size_t size)
{
    ASSERT(pagemap_find(arena->base) == arena && atomic_load(&arena->used) == UINT64_MAX);
    if (arena->mapping == 0) chunk_map_forget(arena->base);
    pagemap_clear(arena->base, size, arena); /* before another thread may map the addresses */
    if (arena->mapping != 0) {
        pages_unmap(arena->base, size);
    } else if (!pages_try_unmap(arena->base, size)) {
        pagemap_enter(arena->base, size, arena); /* does not fail: the leaf is there */
        return false;
    }
    PROBE(arena_unmap, arena->base, size);
    arena_forget(arena, size);
    return true;
}

struct arena *arena_create_at(char *base, size_t size)
{
    ASSERT(base != NULL && (uintptr_t)base % ARENA == 0 && size != 0);
    struct arena *arena = struct_take();
    if (arena == NULL) return NULL;
    ASSERT(arena->base == NULL && arena->mapping == 0 && atomic_load(&arena->used) == UINT64_MAX);
    arena_set_base(arena, base);
    if (pagemap_enter(base, size, arena)) {
        arena_count_mapped(size, 0);
        return arena;
    }
    struct_give(arena);
    return NULL;
}

char *arena_map(size_t size, size_t alignment)
{
    ASSERT(alignment >= ARENA && is_power_of_two(alignment));
    char *base = pages_map(size, alignment);
    if (base == NULL || (uintptr_t)base + size <= (uintptr_t)1 << PAGEMAP_ADDRESS_BITS) {
        if (base != NULL) PROBE(arena_map, base, size);
        return base;
    }
    pages_unmap(base, size);
    errno = ENOMEM;
    return NULL;
}

struct arena *arena_create(size_t size, size_t alignment)
{
    char *base = arena_map(size, alignment);
    struct arena *arena = base != NULL ? arena_create_at(base, size) : NULL;
    if (arena != NULL || base == NULL) return arena;
    pages_unmap(base, size);
    errno = ENOMEM;
    return NULL;
}

/* --- where to look ---------------------------------------------------------------------------- */

static _Atomic uint64_t *hints_of(struct arena_group *group, enum arena_word word)
{
    return word == ARENA_DIRTY ? &group->dirty : &group->free;
}

struct arena *arena_next_with(enum arena_word word, const struct arena *after)
{
    ASSERT(after == NULL || after->group->arenas[after->index] == after);
    struct arena_group *group = after != NULL ? after->group : &arenas.groups;
    unsigned from = after != NULL ? after->index + 1u : 0;
    for (; group != NULL; group = atomic_load(&group->next), from = 0) {
        uint64_t hints = atomic_load_explicit(hints_of(group, word), memory_order_relaxed);
        uint64_t bits = from < 64 ? hints & UINT64_MAX << from : 0;
        if (bits != 0) return atomic_load(&group->arenas[__builtin_ctzll(bits)]);
    }
    return NULL;
}

static void set_hint(struct arena *arena, enum arena_word word)
{
    _Atomic uint64_t *hints = hints_of(arena->group, word);
    if ((atomic_load(hints) & arena_bit(arena)) == 0) atomic_fetch_or(hints, arena_bit(arena));
}

/* A thread that frees slots sets the bit afterwards. So either this thread sees its slots, or that thread
 * sees the bit cleared and sets it. */
void arena_look_for(struct arena *arena, enum arena_word word)
{
    _Atomic uint64_t *hints = hints_of(arena->group, word);
    if (arena_free_in(arena, word) != 0 || (atomic_load(hints) & arena_bit(arena)) == 0) return;
    atomic_fetch_and(hints, ~arena_bit(arena));
    if (arena_free_in(arena, word) != 0) set_hint(arena, word);
}

/* --- claimed slots ---------------------------------------------------------------------------- */

void arena_release(struct arena *arena, uint64_t mask)
{
    ASSERT(mask != 0 && (atomic_load(&arena->used) & mask) == mask);
    ASSERT((atomic_load(&arena->heads) & mask) == 0 && arena->mapping == 0);
    bool dirty = (atomic_load_explicit(&arena->dirty, memory_order_relaxed) & mask) != 0;
    atomic_fetch_and(&arena->used, ~mask);
    set_hint(arena, ARENA_FREE);
    if (dirty) set_hint(arena, ARENA_DIRTY);
}

struct superblock *arena_slot_set(struct arena *arena, unsigned i, enum superblock_kind kind, unsigned n)
{
    ASSERT(n >= 1 && i < ARENA_SLOTS && arena->base != NULL && kind != SLOT_FREE);
    ASSERT(atomic_load(&arena->used) >> i & 1);
    struct superblock *slot = &arena->slots[i];
    char *start = arena->base + (size_t)i * SUPERBLOCK;
    if (kind == SLOT_WIDE) {
        arena->stubs[i * ARENA_STUBS].block = start;
        start = (char *)&arena->stubs[i * ARENA_STUBS];
    }
    slot->free_origin = slot->origin = start - BLOCK_BIAS;
    __atomic_store_n(&slot->kind, (uint8_t)kind, __ATOMIC_RELEASE);
    slot->word = n;
    if (arena->mapping == 0) atomic_fetch_or(&arena->heads, (uint64_t)1 << i);
    return slot;
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
    arenas.creating = arenas.has_purger = false;
}
