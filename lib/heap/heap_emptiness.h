/* SPDX-License-Identifier: Apache-2.0 */
/* heap_emptiness.h: a heap's superblocks by fullness, its accounts, the invariant, and the end of its lock.
 *
 * A thread that finds a heap's lock taken does not wait. It queues or displaces a superblock, sets
 * `deferred`, and tries the lock once more. The holder looks at `deferred` after it has given the lock back.
 * So one of the two sees the superblock.
 *
 * Locking: the caller has the heap's lock, if no comment says otherwise.
 */
#ifndef HEAP_EMPTINESS_H
#define HEAP_EMPTINESS_H

#include "heap/heap_table.h"

/* *at := value, if this thread has the heap's id and *at is expected; on the locked path always. */
enum rseq_result heap_store(struct heap *heap, void *at, uint64_t expected, uint64_t value);

/* Moves pending blocks to a superblock's free list. False: the thread has another id; nothing changed. */
bool heap_collect(struct heap *heap, struct superblock *sb);

/* Files an owned superblock that is neither active nor on a list, by the number of its free blocks. */
void heap_file(struct heap *heap, struct superblock *sb);

/* Takes a superblock out of its bin; takes any empty one of so many slots off its list, or returns NULL. Both
 * adjust the accounts, but not `slots`. */
void heap_bin_out(struct heap *heap, struct superblock *sb);
struct superblock *heap_empty_out(struct heap *heap, unsigned slots);
struct superblock *heap_any_empty_out(struct heap *heap);

void heap_regroup_locked(struct heap *heap, struct superblock *sb);

void heap_file_displaced(struct heap *heap);

/* Takes one displaced superblock off their list, or returns NULL. */
struct superblock *heap_displaced_out(struct heap *heap);

/* For tests and assertions: returns true if the heap's lists and accounts agree, as far as no section of
 * another thread can change them meanwhile. If others run, the caller has the lock. */
bool heap_adds_up(const struct heap *heap, bool others_run);

bool heap_holds_too_much(const struct heap *heap);
size_t heap_keep_invariant(struct heap *heap); /* returns the number of superblocks given */

/* Gives the empty superblocks to the global heap, if the heap has not used any since the call before. True:
 * it gave some, which arrive with the next global_heap_settle. */
bool heap_give_unused(struct heap *heap);

/* Collects the pending blocks of superblocks that were queued to this thread's heap, which is locked. False:
 * this thread has another id now. */
bool heap_collect_queued(struct heap *heap);

/* Gives the lock back. Then heap_unlocked settles the global heap and does the deferred work. */
void heap_unlocked(struct heap *heap, bool given);
static inline void heap_unlock(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    ASSERT_WALK(2 * CLASSES * GROUPS + heap->slots, heap_adds_up(heap, true));
    bool given = heap->given;
    if (UNLIKELY(given)) heap->given = false;
    lock_give(&heap->lock);
    if (UNLIKELY(given || atomic_load(&heap->deferred))) heap_unlocked(heap, given);
}

/* Has the thread that holds the heap's lock look at what was queued or displaced. No lock. */
void heap_defer(struct heap *heap);

#endif
