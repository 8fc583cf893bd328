/* SPDX-License-Identifier: Apache-2.0 */
/* heap_fast.h: malloc and free in one restartable section each.
 *
 * The fast path reads rows, and slow paths change them, as heap.h tells. Where cpu.ids is 0, no thread may
 * enter a section.
 *
 *     pop:   id -> row -> active superblock -> its word -> first free block -> its link    commit: word
 *     carve: id -> row -> active superblock -> its word, which leaves out a run of blocks  commit: word
 *     give:  owner = id? -> link into the block, or the last one of a run                  commit: word
 *     take:  id -> batch of the class -> its first block -> the next one                   commit: batch
 *
 * A section must not wait for the kernel to find a page. Meanwhile another thread may take the superblock
 * from the row, run a fence and unmap the memory. Then the kernel finds no page, and ends the process before
 * it starts the section again. So sections touch only blocks that were used before, or that this thread has:
 * those keep their superblock. (What the kernel has swapped out is left to chance.)
 */
#ifndef HEAP_FAST_H
#define HEAP_FAST_H

#include "arena/false_sharing.h"
#include "heap/heap.h"
#include "heap/heap_table.h"

#if RSEQ_AVAILABLE

static ALWAYS_INLINE void *heap_none(void) { return rseq_none(); }

#ifdef __x86_64__
#include "heap/heap_fast_x86_64.h"
#else
#include "heap/heap_fast_aarch64.h"
#endif

/* They take the block that went last into this id's batch of the class, or NULL; the second one of a wide
 * class takes a stub, which has the next one's address at another place. */
static_assert(HEAP_BATCH_LINK == 8 && HEAP_KEPT_LINK == 0, "the numbers in these two");
HEAP_BATCH_POP(heap_batch_pop, 8)
HEAP_BATCH_POP(heap_kept_pop, 0)

/* Frees a block that superblock_starts_at has checked: in one section if this heap owns the superblock. */
static ALWAYS_INLINE void heap_free(struct superblock *sb, void *block)
{
    if (UNLIKELY(heap_give(sb, block_number(sb, block), block, 1) != RSEQ_DONE)) heap_free_slow(sb, block);
}

/* Carves blocks off this heap's active superblock of the class, if its free list is empty: one for the
 * caller, and a run that becomes the free list. The first touch of a page waits for the kernel: so the
 * section only reserves the blocks, and they are linked and freed behind it. NULL: none. */
static inline void *heap_carve_run(unsigned class, unsigned run)
{
    const struct sizeclass *k = &sizeclasses[class];
    struct superblock *sb;
    uint64_t entry, word, first, last, more, step = sizeclass_step(k);
    do {
        unsigned id = rseq_id();
        entry = __atomic_load_n(&heap_rows[id].active[class], __ATOMIC_ACQUIRE);
        sb = heap_entry_superblock(entry);
        if (sb == NULL) return NULL;
        word = __atomic_load_n(&sb->word, __ATOMIC_RELAXED);
        first = word_carve(word);
        if (word_first(word) != 0 || first > k->carve_limit) return NULL;
        last = first + (superblock_role(sb).owner == id ? run : 0); /* a heap frees its own in one go */
        if (last > k->carve_limit) last = k->carve_limit;
        more = (last - first) / step;
    } while (heap_store_word(class, entry, word,
                             (last + step) << 32 | (uint32_t)(word - ((more + 1) << 16))) != RSEQ_DONE);
    for (uint64_t number = first + step; number <= last; number += step)
        block_set_link(block_at(sb, number), number + step);
    if (more != 0 && heap_give(sb, first + step, block_at(sb, last), more) != RSEQ_DONE) {
        for (uint64_t number = first + step; number <= last; number += step) {
            *(uint64_t *)(void *)block_at(sb, number) = 0;
            heap_free_slow(sb, block_at(sb, number));
        }
    }
    void *block = block_at(sb, first);
    *(uint64_t *)block = 0; /* the slot may hold an earlier life's links */
    return block;
}

static inline void *heap_carve(unsigned class) { return heap_carve_run(class, sizeclasses[class].carve_run); }

/* The same without others, so without a lock: for a caller that holds the heap's. */
static inline void *heap_carve_one(unsigned class) { return heap_carve_run(class, 0); }

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

static inline void *heap_carve_one(unsigned class) { return heap_carve(class); }

static inline void *heap_batch_pop(unsigned class)
{
    (void)class;
    return NULL;
}

static inline void *heap_kept_pop(unsigned class) { return heap_batch_pop(class); }

static inline void heap_free(struct superblock *sb, void *block) { heap_free_slow(sb, block); }

static inline enum rseq_result heap_give_checked(struct superblock *sb, uint64_t number, void *block)
{
    (void)sb, (void)number, (void)block;
    return RSEQ_MOVED;
}

#endif

/* Takes the stub of a wide class that this id freed last, or NULL. */
static ALWAYS_INLINE void *heap_kept_get(unsigned class)
{
    struct stub *stub = heap_kept_pop(class);
    if (stub != NULL) stub->link = 0; /* not before the commit */
    return stub;
}

/* Takes the stub of a wide class that this id freed last, or the active superblock's first; NULL: none. */
static ALWAYS_INLINE void *heap_pop_wide(unsigned class)
{
    void *stub = heap_kept_get(class);
    return LIKELY(stub != NULL) ? stub : heap_pop(class);
}

/* Takes a block from this id's batch, or NULL: if blocks share no cache lines, no matter whose it is. */
static inline void *heap_batch_get(unsigned class)
{
    if (sizeclass_is_wide(class)) return heap_kept_get(class);
    void *block = !false_sharing_possible(class) ? heap_batch_pop(class) : NULL;
    if (block == NULL) return NULL;
    if (!block_looks_free(block)) superblock_written(block);
    ASSERT(heap_is_block(block, class));
    *(uint64_t *)block = *heap_batch_link(block, false) = 0;
    return block;
}

#endif
