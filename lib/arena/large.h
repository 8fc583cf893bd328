/* SPDX-License-Identifier: Apache-2.0 */
/* large.h: objects that have pages of their own.
 *
 * Above half a superblock an object is a span of slots of an arena; above 4 MiB a mapping of its
 * own. Chunks of reaps beyond 32 KiB are spans too, marked as such.
 *
 * Threads: any. No lock but the arenas'.
 */
#ifndef LARGE_H
#define LARGE_H

#include "arena/arena.h"

/* An object of size bytes, aligned; *zeroed (may be NULL): it reads as zero. NULL and ENOMEM. */
void *large_alloc(size_t size, size_t alignment, bool is_chunk, bool *zeroed);

/* Is pointer the start of a large object (which may be a chunk)? */
bool large_starts_at(struct arena *arena, const void *pointer);

/* Frees, measures or resizes in place the object that starts at a pointer. */
void large_free(struct arena *arena, void *object);
size_t large_size(struct arena *arena, const void *object);

/* The same, by its first descriptor. */
static inline size_t large_bytes(const struct arena *arena, const struct superblock *first)
{
    return arena->mapping != 0 ? arena->mapping : arena_span(first) * (size_t)SUPERBLOCK;
}
bool large_resize(struct arena *arena, void *object, size_t size);

/* Resizes a mapping by moving its pages: the new place, or NULL. Only where large_resize said no. */
void *large_move(struct arena *arena, void *object, size_t size);

/* All large objects, chunks among them, and their bytes; walks the arenas. */
struct large_totals {
    size_t objects, bytes;
};
struct large_totals large_totals(void);

#endif
