/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/pagemap.h"

#include "os/pages.h"

enum { STEP = 1 << PAGEMAP_SHIFT }; /* bytes */

/* Programs have their memory at the upper end of their addresses. */
SPARSE_ONCE_END _Atomic(struct pagemap_leaf *) pagemap_root[1 << PAGEMAP_ROOT_BITS];

/* Makes a leaf. Of two threads that make one at once, the first one's stays. */
static struct pagemap_leaf *make_leaf(_Atomic(struct pagemap_leaf *) *root)
{
    struct pagemap_leaf *leaf = pages_map_table(align_up(sizeof *leaf, PAGE)), *there = NULL;
    if (leaf == NULL || atomic_compare_exchange_strong(root, &there, leaf)) return leaf;
    pages_unmap(leaf, align_up(sizeof *leaf, PAGE));
    return there;
}

static _Atomic(struct arena *) *pagemap_entry(uintptr_t address)
{
    ASSERT(address >> PAGEMAP_ADDRESS_BITS == 0);
    _Atomic(struct pagemap_leaf *) *root = &pagemap_root[address >> (PAGEMAP_SHIFT + PAGEMAP_LEAF_BITS)];
    struct pagemap_leaf *leaf = atomic_load_explicit(root, memory_order_acquire);
    if (leaf == NULL) leaf = make_leaf(root);
    if (leaf == NULL) return NULL;
    return &leaf->entries[(address >> PAGEMAP_SHIFT) & ((1u << PAGEMAP_LEAF_BITS) - 1)];
}

void pagemap_clear(const char *start, size_t size, struct arena *arena)
{
    ASSERT((uintptr_t)start % STEP == 0 && arena != NULL);
    for (size_t at = 0; at < size; at += STEP) {
        struct arena *there = arena;
        if (pagemap_find(start + at) == arena)
            atomic_compare_exchange_strong(pagemap_entry((uintptr_t)start + at), &there, NULL);
    }
}

bool pagemap_enter(const char *start, size_t size, struct arena *arena)
{
    ASSERT((uintptr_t)start % STEP == 0 && arena != NULL);
    for (size_t at = 0; at < size; at += STEP) {
        _Atomic(struct arena *) *entry = pagemap_entry((uintptr_t)start + at);
        if (entry == NULL) {
            pagemap_clear(start, at, arena);
            return false;
        }
        atomic_store_explicit(entry, arena, memory_order_release);
    }
    return true;
}
