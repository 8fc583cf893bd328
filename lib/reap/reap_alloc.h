/* SPDX-License-Identifier: Apache-2.0 */
/* reap_alloc.h: the slow path of allocation, and freeing and resizing.
 *
 * The slow path first frees the pending objects of other threads. Then it tries gaps, the hole, and a new
 * chunk (reap_free_take). An object above REAP_LARGE bytes has a chunk of its own. The chunk is resized in
 * place where possible, and goes back as soon as the object is freed.
 *
 * Threads: the reap's own. Nothing here checks its arguments; see misuse.h.
 */
#ifndef REAP_ALLOC_H
#define REAP_ALLOC_H

#include "region/reap_free.h"

/* This thread's walk over a reap: its function may free objects, but not the one that comes next. */
struct reap_walk {
    const struct reap *reap;
    const void *coming;      /* or NULL */
    struct reap_walk *outer; /* the walk whose function runs this one, or NULL */
};
extern HIDDEN __thread struct reap_walk *reap_walk __attribute__((tls_model("initial-exec")));

/* An object of size bytes. NULL: no memory (ENOMEM). */
void *reap_alloc(struct reap *reap, size_t size);
static inline void *reap_alloc_slow(void *reap, size_t size) { return reap_alloc(reap, size); }

/* Allocates by a fast path, or else by slow(with, size). Where reapMalloc is inline it has tried to bump
 * before. So this begins with heap mode, and a gap of exactly this size: programs ask for most sizes
 * again. The next call waits for the new bump, so only one addition leads to it from the old one. */
static ALWAYS_INLINE void *reap_alloc_or(struct reap *reap, size_t size, void *(*slow)(void *, size_t),
                                         void *with)
{
    size_t last = size - 1;
    bool is_small = last < REAP_EXACT_LISTS * REAP_UNIT;
    if (is_small) {
        void *object = reap_free_take_exact(reap, (size + REAP_UNIT - 1) / REAP_UNIT);
        if (object) return object;
    }
    if (UNLIKELY(last >= (size_t)(reap->end - reap->bump))) {
        bool takes_hole = is_small && reap->tables != &reap_no_tables;
        if (takes_hole && last < (size_t)(reap->bump_max - reap->bump)) return reap_free_bump(reap, size);
        return slow(with, size);
    }
    ASSERT(reap->current && reap->end <= reap->bump_max && reap->current->owner == reap && !reap->heap);
    return reap_bump_over(reap, size);
}

/* Allocates by the fast path, or else by the slow path of the same reap. */
static inline void *reap_alloc_any(struct reap *reap, size_t size)
{
    return reap_alloc_or(reap, size, reap_alloc_slow, reap);
}

/* Allocates as reap_alloc does, and sets *zeroed to whether the object is known to be zero. */
void *reap_alloc_zeroed(struct reap *reap, size_t size, bool *zeroed);

/* An object at an alignment, which is a power of two. */
void *reap_alloc_aligned(struct reap *reap, size_t alignment, size_t size);

/* Resizes an object of this chunk; it may move. On failure it stays as it was. */
void *reap_alloc_resize(struct reap *reap, struct reap_chunk *chunk, void *object, size_t size);

/* Resizes an object of a hidden child's chunk; it moves to the shared reap itself. On failure it stays. */
void *reap_alloc_resize_in(struct reap *from, struct reap_chunk *chunk, void *object, struct reap *to,
                           size_t size);

/* Moves an object of this chunk to another reap, and returns its new address. On failure it stays. */
void *reap_alloc_move(struct reap *from, struct reap_chunk *chunk, void *object, struct reap *to);

void reap_alloc_free(struct reap *reap, struct reap_chunk *chunk, void *object);

/* A record of at most REAP_LARGE bytes: the reap's own until the next clear. NULL: no memory. */
void *reap_alloc_record(struct reap *reap, size_t size);

/* Frees the pending objects, and links the chunks that other threads have made. The second one does so with
 * all reaps of a tree, all of which this thread holds. */
void reap_alloc_take_remote(struct reap *reap);
void reap_alloc_take_remote_below(struct reap *top);

#endif
