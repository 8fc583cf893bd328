#include "map.h"

#include "pages.h"

enum { STEP = 1 << MAP_SHIFT }; /* bytes */

_Atomic(struct map_leaf *) map_root[1 << MAP_ROOT_BITS];

static _Atomic(struct arena *) *map_entry(uintptr_t address)
{
    _Atomic(struct map_leaf *) *root = &map_root[address >> (MAP_SHIFT + MAP_LEAF_BITS)];
    struct map_leaf *leaf = atomic_load_explicit(root, memory_order_relaxed);
    if (leaf == NULL) {
        leaf = pages_map(sizeof *leaf, PAGE);
        if (leaf == NULL) return NULL;
        atomic_store_explicit(root, leaf, memory_order_release);
    }
    return &leaf->entries[(address >> MAP_SHIFT) & ((1u << MAP_LEAF_BITS) - 1)];
}

void map_clear(const char *start, size_t size)
{
    for (size_t at = 0; at < size; at += STEP)
        if (map_find(start + at) != NULL)
            atomic_store_explicit(map_entry((uintptr_t)start + at), NULL, memory_order_relaxed);
}

bool map_enter(const char *start, size_t size, struct arena *arena)
{
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
