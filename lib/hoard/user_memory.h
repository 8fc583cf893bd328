/* SPDX-License-Identifier: Apache-2.0 */
/* user_memory.h: memory of the user that reaps live in: buffers, and chunks of sources.
 *
 * User memory may lie anywhere, even inside a block of this allocator, so the pagemap cannot find it. A small
 * table does, sorted by address. A search reads the table without a lock, and starts again if the table has
 * changed meanwhile. No search reads an empty table. owner.h asks this table first, because a buffer may lie
 * in a reap's object.
 *
 * A piece lies in no other one: so a buffer may lie in a reap's object, if that reap's memory is no
 * program's.
 *
 * Threads: any. Lock rank: concurrency.md; only user_memory_freeze and fork hold other locks with it.
 */
#ifndef USER_MEMORY_H
#define USER_MEMORY_H

#include "base/base.h"

enum {
    USER_MEMORY_MAX = 4096,  /* pieces of memory at once */
    USER_MEMORY_ALIGN = 1024 /* bytes; the alignment of a piece */
};

/* Enters a piece. Returns 0; ENOMEM if the table is full; EINVAL if the piece lies in another one; EEXIST if
 * it lies partly in one, around one, or where one begins. */
int user_memory_add(void *start, size_t size);

void user_memory_remove(const void *start);

/* From now on objects may lie apart: searches look in their table (apart_table.h) as well. */
void user_memory_begin_apart(void);

/* 0: the table is empty, and no objects lie apart. */
extern HIDDEN _Atomic unsigned user_memory_any;

/* The piece that holds a pointer, and its bytes; NULL for any other value. For an object that lies apart, its
 * header, which lies elsewhere, and no bytes. */
void *user_memory_search(const void *pointer, size_t *size);
static inline void *user_memory_find(const void *pointer, size_t *size)
{
    if (LIKELY(atomic_load_explicit(&user_memory_any, memory_order_relaxed) == 0)) return NULL;
    return user_memory_search(pointer, size);
}

/* Between these two calls no piece is entered or taken out. */
void user_memory_freeze(void);
void user_memory_thaw(void);

/* Frozen: calls fn for each piece. Stops when fn does not return 0, and returns that value. */
int user_memory_walk(int (*fn)(void *start, size_t size, void *arg), void *arg);

void user_memory_fork_prepare(void);
void user_memory_fork_parent(void);
void user_memory_fork_child(void);

#endif
