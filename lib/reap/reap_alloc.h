/* SPDX-License-Identifier: Apache-2.0 */
/* reap_alloc.h: how a reap gets memory for an object, when bumping does not do.
 *
 * In this order: what other threads freed is taken in; a free block; the hole; a new chunk. Objects
 * above REAP_LARGE bytes get a chunk of their own, resized in place where that is possible and
 * given back as soon as they are freed.
 *
 * Threads: the reap's own. Nothing here checks what it is given; see misuse.h.
 */
#ifndef REAP_ALLOC_H
#define REAP_ALLOC_H

#include "region/reap_free.h"

/* An object of size bytes. NULL: no memory (ENOMEM). */
void *reap_alloc(struct reap *reap, size_t size);
static inline void *reap_alloc_slow(void *reap, size_t size) { return reap_alloc(reap, size); }

/* The same by a fast path, or else by slow(with, size). Who has reapMalloc inline has tried to bump before.
 * So this begins with what heap mode needs: a free block of just this size, which most are that a program
 * asks for again. What the next call waits for is the new bump, so it adds once to the old one. */
static ALWAYS_INLINE void *reap_alloc_or(struct reap *reap, size_t size, void *(*slow)(void *, size_t),
                                         void *with)
{
    size_t last = size - 1;
    if (last < REAP_EXACT_LISTS * REAP_UNIT) {
        void *object = reap_free_take_exact(reap, size);
        if (object) return object;
    }
    if (UNLIKELY(last >= (size_t)(reap->end - reap->bump))) return slow(with, size);
    char *object = reap->bump;
    ASSERT(reap->current && reap->end <= reap->bump_max && reap->current->owner == reap);
    reap_mark_start(reap, object);
    ASSERT(bitmap_get(reap->current->starts, reap_unit(reap->current, object)));
    char *end = object + (last | (REAP_UNIT - 1)) + 1;
    ASSERT(end <= reap->end);
    __atomic_store_n(&reap->bump, end, __ATOMIC_RELEASE); /* in this order, for remote_free.c */
    return object;
}

/* The same with this reap's slow path. */
static inline void *reap_alloc_any(struct reap *reap, size_t size)
{
    return reap_alloc_or(reap, size, reap_alloc_slow, reap);
}

/* The same as reap_alloc, telling whether its bytes are known to be zero. */
void *reap_alloc_zeroed(struct reap *reap, size_t size, bool *zeroed);

/* An object at an alignment, which is a power of two. */
void *reap_alloc_aligned(struct reap *reap, size_t alignment, size_t size);

/* Resizes an object of this chunk; it may move. On failure it stays as it was. */
void *reap_alloc_resize(struct reap *reap, struct reap_chunk *chunk, void *object, size_t size);

/* Moves an object of this chunk to another reap; its new place. On failure it stays. */
void *reap_alloc_move(struct reap *from, struct reap_chunk *chunk, void *object, struct reap *to);

/* Frees an object of this chunk. */
void reap_alloc_free(struct reap *reap, struct reap_chunk *chunk, void *object);

/* Memory for the reap's own use, gone at the next clear; at most REAP_LARGE bytes. NULL: no memory. */
void *reap_alloc_record(struct reap *reap, size_t size);

/* Have other threads freed something? */
static inline bool reap_alloc_pending(const struct reap *reap)
{
    return atomic_load_explicit(&reap->remote, memory_order_relaxed) != 0;
}

/* Frees what other threads freed. Every slow path begins with this. */
void reap_alloc_take_remote(struct reap *reap);

#endif
