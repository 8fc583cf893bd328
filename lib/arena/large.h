/* SPDX-License-Identifier: Apache-2.0 */
/* large.h: objects with pages of their own.
 *
 * Objects above 128 KiB are spans of slots; above 32 MiB, and some that have grown above 4 MiB, they have
 * mappings of their own. Chunks of reaps above 32 KiB are spans too, marked as such. So are objects above 32
 * KiB that have grown, because a span may grow again without a copy, and objects above 64 KiB that must read
 * as zero, as clean slots do.
 *
 * Threads: any. No lock, only the arenas' gate.
 */
#ifndef LARGE_H
#define LARGE_H

#include "arena/arena.h"

enum { LARGE_LEAST = SUPERBLOCK / 2 /* bytes; no span is for less */ };

/* Allocates at a multiple of alignment. *zeroed (may be NULL): it reads as zero. NULL and ENOMEM. */
void *large_alloc(size_t size, size_t alignment, bool is_chunk, bool *zeroed);

bool large_starts_at(struct arena *arena, const void *pointer);

/* These free, measure or resize in place the object that starts at a pointer. */
void large_free(struct arena *arena, void *object);
size_t large_size(struct arena *arena, const void *object);

static inline size_t large_bytes(const struct arena *arena, const struct superblock *first)
{
    return arena->mapping != 0 ? arena->mapping : arena_span(first) * (size_t)SUPERBLOCK;
}
bool large_resize(struct arena *arena, void *object, size_t size);

/* Resizes a mapping by moving its pages, or lets a span grow by a move of its pages or a copy. Returns the
 * new place, or NULL. Only after large_resize returned false. */
void *large_move(struct arena *arena, void *object, size_t size);

/* The number of all large objects and large chunks, and their bytes. Walks the arenas. */
struct large_totals {
    size_t objects, bytes;
};
struct large_totals large_totals(void);

#endif
