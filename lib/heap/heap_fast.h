/* SPDX-License-Identifier: Apache-2.0 */
/* heap_fast.h: malloc and free in one restartable section each.
 *
 * The fast path reads rows, and slow paths change them, as heap.h tells. Where cpu.ids is 0, no thread may
 * enter a section.
 *
 *     pop:   id -> row -> active superblock -> its word -> first free block -> its link    commit: word
 *     carve: id -> row -> active superblock -> its word -> links of a run of fresh blocks  commit: word
 *     free:  owner = id? -> link into the block                                            commit: word
 *     take:  id -> batch of the class -> its first block -> the next one                   commit: batch
 *
 * A batch's word: the first block's address : 48 | closed : 1 | blocks : 15. A block in it looks free, as one
 * on a superblock's free list does; its second eight bytes have the address of the next block, disguised.
 */
#ifndef HEAP_FAST_H
#define HEAP_FAST_H

#include "heap/heap.h"
#include "os/rseq.h"

/* The entries are distances of descriptors from HEAP_ROW_ORIGIN; 0: no superblock. */
struct heap_row {
    uint64_t active[CLASSES]; /* by class */
};

/* The remote batches of an id, by class. */
struct heap_batches {
    uint64_t of[CLASSES];
};

extern HIDDEN struct heap_row heap_rows[IDS_MAX];

/* On x86-64 this is the row of id 0. There is no class 0, so its first word is always 0. So pop may take an
 * entry of 0 for a descriptor too: its word has no free block, and pop needs no test of its own. */
#ifdef __x86_64__
#define HEAP_ROW_ORIGIN ((uintptr_t)heap_rows)
#else
#define HEAP_ROW_ORIGIN ((uintptr_t)0)
#endif

static inline uint64_t heap_entry(const struct superblock *sb)
{
    return sb != NULL ? (uintptr_t)sb - HEAP_ROW_ORIGIN : 0;
}

static inline struct superblock *heap_entry_superblock(uint64_t entry)
{
    return entry != 0 ? (struct superblock *)(uintptr_t)(entry + HEAP_ROW_ORIGIN) : NULL;
}
extern HIDDEN struct heap_batches heap_batches[IDS_MAX];

#define HEAP_BATCH_CLOSED ((uint64_t)1 << 48)
#define HEAP_BATCH_ONE ((uint64_t)1 << 49)

#if RSEQ_AVAILABLE

static ALWAYS_INLINE void *heap_none(void) { return rseq_none(); }

#ifdef __x86_64__
#include "heap/heap_fast_x86_64.h"
#else
#include "heap/heap_fast_aarch64.h"
#endif

#else

static inline void *heap_pop(unsigned class)
{
    (void)class;
    return NULL;
}

static inline void *heap_carve(unsigned class)
{
    (void)class;
    return NULL;
}

static inline void *heap_batch_pop(unsigned class)
{
    (void)class;
    return NULL;
}

static inline void heap_free(struct superblock *sb, void *block) { heap_free_slow(sb, block); }

#endif

#endif
