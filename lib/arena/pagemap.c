/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/pagemap.h"

#include "os/pages.h"

enum { STEP = 1 << MAP_SHIFT }; /* bytes */

_Atomic(struct map_leaf *) map_root[1 << MAP_ROOT_BITS];

/* Of two threads that make one, the first one's stays. */
static struct map_leaf *make_leaf(_Atomic(struct map_leaf *) *root)
{
    struct map_leaf *leaf = pages_map(align_up(sizeof *leaf, PAGE), PAGE), *there = NULL;
    if (leaf == NULL || atomic_compare_exchange_strong(root, &there, leaf)) return leaf;
    pages_unmap(leaf, align_up(sizeof *leaf, PAGE));
    return there;
}

static _Atomic(struct arena *) *map_entry(uintptr_t address)
{
    ASSERT(address >> MAP_ADDRESS_BITS == 0);
    _Atomic(struct map_leaf *) *root = &map_root[address >> (MAP_SHIFT + MAP_LEAF_BITS)];
    struct map_leaf *leaf = atomic_load_explicit(root, memory_order_acquire);
    if (leaf == NULL) leaf = make_leaf(root);
    if (leaf == NULL) return NULL;
    return &leaf->entries[(address >> MAP_SHIFT) & ((1u << MAP_LEAF_BITS) - 1)];
}

void map_clear(const char *start, size_t size)
{
    ASSERT((uintptr_t)start % STEP == 0);
    for (size_t at = 0; at < size; at += STEP)
        if (map_find(start + at) != NULL)
            atomic_store_explicit(map_entry((uintptr_t)start + at), NULL, memory_order_relaxed);
}

void map_clear_of(const char *start, size_t size, struct arena *arena)
{
    ASSERT((uintptr_t)start % STEP == 0 && arena != NULL);
    for (size_t at = 0; at < size; at += STEP) {
        struct arena *there = arena;
        atomic_compare_exchange_strong(map_entry((uintptr_t)start + at), &there, NULL);
    }
}

bool map_enter(const char *start, size_t size, struct arena *arena)
{
    ASSERT((uintptr_t)start % STEP == 0 && arena != NULL);
    for (size_t at = 0; at < size; at += STEP) {
        _Atomic(struct arena *) *entry = map_entry((uintptr_t)start + at);
        if (entry == NULL) {
            map_clear(start, at);
            return false;
        }
        atomic_store_explicit(entry, arena, memory_order_release);
    }
    return true;
}
