/* reap_alloc.h: how a reap gets memory for an object, when bumping does not do.   (floor 6)
 *
 * In this order: what other threads freed is taken in; a free block; the hole; a new chunk. Objects
 * above REAP_LARGE bytes get a chunk of their own, resized in place where that is possible and
 * given back as soon as they are freed.
 *
 * Threads: the reap's own. Nothing here checks what it is given; see reap_misuse.h.
 */
#ifndef REAP_ALLOC_H
#define REAP_ALLOC_H

#include "reap_free.h"

/* An object of size bytes. NULL: no memory (ENOMEM). */
void *reap_alloc(struct reap *reap, size_t size);

/* The same with the fast path before it. */
static inline void *reap_alloc_any(struct reap *reap, size_t size)
{
    size_t last = size - 1, bin = last / REAP_UNIT;
    struct reap_block *block = bin - 1 < REAP_EXACT_BINS - 1 ? reap->heap->bins[bin] : NULL;
    if (block) return reap_free_take_exact(reap, reap->heap, block->chunk, block, bin);
    if (last >= (size_t)(reap->end - reap->bump)) return reap_alloc(reap, size);
    char *object = reap->bump;
    reap_mark_start(reap, object);
    __atomic_store_n(&reap->bump, object + (last | (REAP_UNIT - 1)) + 1, __ATOMIC_RELEASE);
    return object;
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
    return atomic_load_explicit(&reap->remote, memory_order_relaxed) != NULL;
}

/* Frees what other threads freed. Every slow path begins with this. */
void reap_alloc_drain(struct reap *reap);

#endif
