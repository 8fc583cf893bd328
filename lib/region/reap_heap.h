/* SPDX-License-Identifier: Apache-2.0 */
/* reap_heap.h: the tables of a reap as a heap.
 *
 * The bins of its free blocks (freelist.h), and the way from an object to its chunk. The backend tells that
 * (chunk_of), and `near` remembers what it told, so that most frees do not ask:
 *
 *     address   | ... | 16 KiB | 16 KiB | 16 KiB | ...        near[address / 16 KiB % entries]
 *                          \       \
 *     near        | chunk | chunk | nowhere | chunk | ...
 *
 * There are 64 entries in the reap itself, and more in memory of its own where the chunks of a bigger one met
 * in an entry; one that knows nothing points to a chunk of no size. Fast paths see these tables through
 * reap->heap: a reap that has freed nothing shares tables that know nothing with all others, so its own need
 * not be cleared when it is made, and no test asks whether they were.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_HEAP_H
#define REAP_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct reap_chunk;

enum {
    REAP_NEAR = 64,                  /* entries of the table of chunks by address, at first */
    REAP_NEAR_MAX = 64 * 1024,       /* and of the widest */
    REAP_NEAR_SHIFT = 14,            /* and there is one for each 16 KiB */
    REAP_EXACT_BINS = 32,            /* bins of one size each: 1 to 32 units */
    REAP_BINS = REAP_EXACT_BINS + 22 /* and two to each doubling, up to a whole chunk */
};

/* A free block, as it lies in memory. */
struct reap_block {
    struct reap_block *next;
    struct reap_block *prev;
    size_t units; /* of one that has more than REAP_EXACT_BINS */
};

/* What heap mode looks up. */
struct reap_heap {
    struct reap_block *bins[REAP_BINS]; /* the first free block of each size, or NULL */
    size_t near_last;                   /* of near's entries: their number, a power of two, less one */
    struct reap_chunk *near[REAP_NEAR]; /* by address; never NULL. There may be more: reap_near() */
};

/* The bytes of tables with so many entries. */
static inline size_t reap_heap_size(size_t entries)
{
    return offsetof(struct reap_heap, near) + entries * sizeof(struct reap_chunk *);
}

/* All entries, more than the array has perhaps. */
static inline struct reap_chunk **reap_near_all(struct reap_heap *heap)
{
    return (struct reap_chunk **)((char *)heap + offsetof(struct reap_heap, near));
}

/* The entry for an address. */
static inline struct reap_chunk **reap_near(struct reap_heap *heap, const void *pointer)
{
    return reap_near_all(heap) + ((uintptr_t)pointer >> REAP_NEAR_SHIFT & heap->near_last);
}

#endif
