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

/* The kind of a pointer: the first call is for pointers into no chunk, the second for any, and sets *chunk to
 * the chunk or NULL. If it is no object's, they end the program with a line that names `call`. */
enum owner { OWNER_BLOCKS, OWNER_LARGE, OWNER_CHUNK };
enum owner owner_beside_chunks(struct arena *arena, const void *pointer, const char *call);
enum owner owner_of(struct arena *arena, const void *pointer, const char *call, void **chunk);

#endif
