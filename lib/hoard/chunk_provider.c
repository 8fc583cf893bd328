/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/chunk_provider.h"

#include "arena/large.h"
#include "base/probe.h"
#include "hoard/init.h"
#include "hoard/malloc_fast.h"
#include "hoard/user_memory.h"

void chunk_start(void) { hoard_start(); }

void *chunk_alloc(size_t size, size_t *got, bool *zeroed)
{
    size_t bytes = size;
    void *chunk;
    hoard_start();
    if (LIKELY(size <= CLASS_CHUNK_MAX)) {
        unsigned class = sizeclass_of_chunk(size);
        bytes = sizeclasses[class].size;
        if (zeroed != NULL) *zeroed = false;
        chunk = hoard_block(class);
    } else {
        chunk = hoard_large(size, CHUNK_MIN, true, zeroed);
        if (LIKELY(size <= ARENA_SPAN_MAX))
            bytes = align_up(size, SUPERBLOCK); /* a span has as many slots as it needs */
        else if (chunk != NULL)
            bytes = large_size(pagemap_find(chunk), chunk);
        ASSERT(chunk == NULL || (bytes >= size && bytes == large_size(pagemap_find(chunk), chunk)));
    }
    if (got != NULL) *got = bytes;
    PROBE(chunk_alloc, chunk, bytes);
    return chunk;
}

void chunk_free(void *chunk)
{
    struct arena *arena = pagemap_find(chunk);
    struct superblock *sb = arena_slot(arena, chunk);
    ASSERT(arena != NULL && (sb->kind == SLOT_CHUNKS || large_starts_at(arena, chunk)));
    PROBE(chunk_free, chunk);
    if (LIKELY(sb->kind == SLOT_CHUNKS)) {
        hoard_push(sb, chunk);
        return;
    }
    int saved = errno;
    large_free(arena, chunk);
    errno = saved;
}

bool chunk_resize(void *chunk, size_t size, size_t *got)
{
    struct arena *arena = pagemap_find(chunk);
    struct superblock *sb = arena_slot(arena, chunk);
    ASSERT(arena != NULL && (sb->kind == SLOT_CHUNKS || large_starts_at(arena, chunk)));
    if (arena->mapping == 0 && sb->kind == SLOT_CHUNKS) {
        *got = superblock_class(sb)->size;
        return size <= *got;
    }
    bool done = large_resize(arena, chunk, size);
    *got = large_size(arena, chunk);
    return done || size <= *got;
}

void *chunk_move(void *chunk, size_t size, size_t *got)
{
    struct arena *arena = pagemap_find(chunk);
    ASSERT(arena != NULL);
    if (size <= CLASS_CHUNK_MAX || !large_starts_at(arena, chunk)) return NULL;
    void *moved = large_move(arena, chunk, size);
    if (moved != NULL) *got = large_size(pagemap_find(moved), moved);
    return moved;
}

void chunk_purge(size_t keep, size_t most) { arena_purge_unused(keep, most); }

void chunk_freeze(void)
{
    arena_freeze();
    user_memory_freeze();
}

void chunk_thaw(void)
{
    user_memory_thaw();
    arena_thaw();
}

/* Returns how many bytes from start on belong to the arena or mapping that start points into. The map has a
 * mapping in units of 4 MiB. So the last unit may reach beyond the mapping's end, to memory of the user. */
static size_t bytes_of_arena(const char *start)
{
    const struct arena *arena = pagemap_find(start);
    if (arena == NULL) return 0;
    size_t bytes = arena->mapping != 0 ? arena->mapping : ARENA, before = (size_t)(start - arena->base);
    return before < bytes ? bytes - before : 0;
}

/* A span may go on in the arenas behind. */
bool chunk_is_readable(const void *start_, size_t size)
{
    const char *start = start_;
    size_t bytes;
    while ((bytes = bytes_of_arena(start)) != 0) {
        if (size <= bytes) return true;
        start += bytes;
        size -= bytes;
    }
    const char *piece = user_memory_find(start, &bytes);
    size_t before = (size_t)(start - piece);
    return piece != NULL && before <= bytes && size <= bytes - before;
}
