/* SPDX-License-Identifier: Apache-2.0 */
/* realloc.c: the size of a block, and another size for it. */
#include "hoard/malloc_fast.h"

#include "arena/large.h"
#include "hoard/hardened.h"
#include "hoard/owner.h"
#include "hoard/reap_hooks.h"

#include <string.h>

static const char freed[] = "used after it was freed";

size_t hoard_usable_size_any(const void *block, const char *call)
{
    if (block == NULL) return 0;
    if (UNLIKELY(hardened_level != 0)) return hardened_usable(block, call);
    struct owner owner = owner_of(pagemap_find(block), block, call, freed);
    return owner.kind == OWNER_CHUNK ? reap_hooks->usable_size(owner.at, block, call) : owner.size;
}

/* Returns true if the object may stay: not more than half would be wasted, or no smaller class serves. */
static bool may_stay(size_t size, size_t usable)
{
    if (size <= usable && size >= usable / 2) return true;
    return size <= CLASS_SIZE_MAX && sizeclasses[sizeclass_of(size)].size == usable;
}

/* Resizes in place, or moves pages, or leaves the object as it is; last it copies. */
void *hoard_realloc_any(void *block, size_t size, const char *call)
{
    if (block == NULL) return hoard_malloc_fast(size);
    if (UNLIKELY(hardened_level != 0)) return hardened_resize(block, size, call);
    struct owner owner = owner_of(pagemap_find(block), block, call, freed);
    if (size > SIZE_LIMIT) return no_memory();
    if (owner.kind == OWNER_CHUNK) return reap_hooks->realloc_object(owner.at, block, size, call);
    size_t usable = owner.size;
    if (owner.kind == OWNER_LARGE) {
        if (size > usable) hoard_make_room_near_limit(size - usable);
        if (large_resize(owner.arena, block, size)) return block;
        void *moved = large_move(owner.arena, block, size);
        if (moved != NULL) return moved;
        usable = large_size(owner.arena, block);
    }
    if (may_stay(size, usable)) return block;
    bool is_large = size > LARGE_LEAST && size > usable; /* it grows: a span may grow again without a copy */
    void *copy = is_large ? hoard_large(size, BLOCK_UNIT, false, NULL) : hoard_malloc_fast(size);
    if (copy == NULL) return size > usable ? NULL : block; /* shrinking never fails */
    memcpy(copy, block, size < usable ? size : usable);
    hoard_free_fast(block, call);
    return copy;
}
