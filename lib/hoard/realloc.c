/* SPDX-License-Identifier: Apache-2.0 */
/* realloc.c: the size of a block, and another size for it. */
#include "hoard/malloc_fast.h"

#include "arena/large.h"
#include "base/report.h"
#include "hoard/owner.h"
#include "hoard/reap_hooks.h"

#include <string.h>

size_t hoard_usable_size_any(const void *block, const char *call)
{
    if (block == NULL) return 0;
    void *chunk;
    struct arena *arena = pagemap_find(block);
    switch (owner_of(arena, block, call, &chunk)) {
    case OWNER_BLOCKS:
        break;
    case OWNER_LARGE:
        return large_size(arena, block);
    case OWNER_CHUNK:
        return reap_hooks->usable_size(chunk, block, call);
    }
    struct superblock *sb = arena_head(arena, block);
    void *stub = arena_stub(arena, sb, block);
    if (stub == NULL || (block_looks_free(stub) && heap_block_is_free(sb, stub)))
        report_misuse(call, block, "used after it was freed");
    return superblock_class(sb)->size;
}

/* A block stays where it is unless more than half of it would be wasted. */
static bool fits(size_t size, size_t usable) { return size <= usable && size >= usable / 2; }

/* Allocates a new block, copies the contents, and frees the old one. A large object that grows gets a span,
 * which may grow further without a copy. */
static void *replace(void *block, size_t usable, size_t size, const char *call)
{
    ASSERT(usable != 0);
    bool is_large = size > LARGE_LEAST && size > usable;
    void *moved = is_large ? hoard_large(size, BLOCK_UNIT, false, NULL) : hoard_malloc_fast(size);
    if (moved == NULL) return NULL;
    memcpy(moved, block, size < usable ? size : usable);
    hoard_free_fast(block, call);
    return moved;
}

static void *realloc_block(void *block, size_t size, size_t usable, const char *call)
{
    if (fits(size, usable) || (size <= CLASS_SIZE_MAX && sizeclasses[sizeclass_of(size)].size == usable))
        return block;
    void *moved = replace(block, usable, size, call);
    return moved != NULL || size > usable ? moved : block; /* shrinking never fails */
}

static void *realloc_large(struct arena *arena, void *object, size_t size, const char *call)
{
    size_t now = large_size(arena, object);
    ASSERT(large_starts_at(arena, object) && now != 0);
    if (size > now) hoard_make_room_near_limit(size - now);
    if (large_resize(arena, object, size)) return object;
    void *moved = large_move(arena, object, size);
    return moved != NULL ? moved : realloc_block(object, size, large_size(arena, object), call);
}

void *hoard_realloc_any(void *block, size_t size, const char *call)
{
    if (block == NULL) return hoard_malloc_fast(size);
    struct arena *arena = pagemap_find(block);
    void *chunk;
    enum owner owner = owner_of(arena, block, call, &chunk);
    if (size > SIZE_LIMIT) return no_memory();
    switch (owner) {
    case OWNER_LARGE:
        return realloc_large(arena, block, size, call);
    case OWNER_CHUNK:
        return reap_hooks->realloc_object(chunk, block, size, call);
    case OWNER_BLOCKS:
        break;
    }
    return realloc_block(block, size, hoard_usable_size_any(block, call), call);
}
