/* SPDX-License-Identifier: Apache-2.0 */
/* owner.h: the owner of a pointer that a program hands back.
 *
 *     the user's memory of a reap    ->  a chunk             user_memory.h
 *     map -> arena -> slot           ->  a block             SLOT_BLOCKS, SLOT_WIDE
 *                                        a chunk             SLOT_CHUNKS, SLOT_SPAN_CHUNK
 *                                        a large object      SLOT_SPAN, or a mapping
 *     none of these                  ->  a line, and abort
 *
 * No call reads the program's memory or faults, whatever the bit pattern. Threads: any, without a lock.
 */
#ifndef OWNER_H
#define OWNER_H

#include "arena/arena.h"
#include "hoard/user_memory.h"

/* The chunk of a reap that holds a pointer; sets *got to its bytes unless got is NULL. `arena` is the
 * pointer's, NULL: none. */
void *owner_chunk_elsewhere(struct arena *arena, const void *pointer, size_t *got);
static inline void *owner_chunk(struct arena *arena, const void *pointer, size_t *got)
{
    void *lent = user_memory_find(pointer, got);
    if (UNLIKELY(lent != NULL) || arena == NULL) return lent;
    const struct superblock *sb = arena_slot(arena, pointer);
    if (UNLIKELY(sb->kind != SLOT_CHUNKS)) return owner_chunk_elsewhere(arena, pointer, got);
    size_t size = superblock_class(sb)->size; /* a power of two */
    if (got != NULL) *got = size;
    return (void *)align_down((uintptr_t)pointer, size);
}

/* What a pointer into memory of this allocator is, found once. */
struct owner {
    enum { OWNER_BLOCKS, OWNER_LARGE, OWNER_CHUNK } kind;
    size_t size;           /* bytes of a block or of a large object */
    struct arena *arena;   /* of these two */
    struct superblock *sb; /* of a block */
    void *at;              /* the block, or its stub; the chunk */
};

/* The owner of a pointer. If it is no live object's, the call ends the program with a line that names `call`;
 * `freed` is what the line says of a free block. The reap layer checks what lies in a chunk. */
struct owner owner_of(struct arena *arena, const void *pointer, const char *call, const char *freed);

#endif
