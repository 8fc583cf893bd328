/* SPDX-License-Identifier: Apache-2.0 */
/* owner.h: the owner of a pointer that a program hands back.
 *
 *     the user's memory of a reap    ->  a chunk             user_memory.h
 *     map -> arena -> slot           ->  a block             SLOT_BLOCKS, SLOT_WIDE
 *                                        a chunk             SLOT_CHUNKS, SLOT_SPAN_CHUNK
 *                                        a large object      SLOT_SPAN, or a mapping
 *     none of these                  ->  a line, and abort
 *
 * The call reads none of the program's memory, and does not fault. Threads: any, without a lock.
 */
#ifndef OWNER_H
#define OWNER_H

#include "arena/arena.h"

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
