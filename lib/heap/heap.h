/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h: who owns which superblock.
 *
 * A heap per id (rseq.h: a CPU, or a concurrency id) and the global heap, as in Hoard (ASPLOS 2000,
 * section 3). The emptiness invariant lives here and nowhere else.
 *
 *     row of heap i:  | active superblock of class 1 | of class 2 | ...       read by the fast path
 *     heap i:         bins by class and fullness, empty superblocks, queued ones, a, u    under its lock
 *
 *     malloc:  active superblock  ->  fullest in the bin  ->  empty  ->  global heap  ->  arena
 *     free:    owner's: into the superblock     others': batch of the class and the id that frees, and from
 *              there to a malloc on that id, or in chains onto their superblocks' pending lists
 *
 * States of a superblock of heap i, and how it gets from one to the next
 *   active    in the row; owner is i; mallocs and frees of threads with id i change its word
 *   owned     in a bin; owner is i; frees of threads with id i change its word
 *   empty     in `empty`, unowned
 *   leaving   unowned, on no list, then the global heap's or the arena's
 * A lock does not keep out the fast path. Into the row and out of it, and out of ownership, leads one store
 * in a restartable section that checks that this thread still has id i (rseq_store): then no other
 * thread is inside a section on i, and what is not reachable any more is unowned. For the heap of
 * another id the store is followed by rseq_fence.
 *
 * The invariant, with f in eighths and fullness recorded in eighths (superblock.h):
 *     recorded free eighths <= 8 K   or   <= f * superblocks
 * The free that takes a superblock to its next group restores it, by giving superblocks that are at
 * least f empty to the global heap. What is free but not recorded is bounded; bound.md has the sum.
 *
 * On the locked path no superblock has an owner, rows are used under the heap's lock, and heap_policy.h says
 * which heap a thread uses.
 *
 * Where things are: heap_fast.h the fast paths; heap_policy.c the policies; heap_table.c heaps, locks;
 * heap_emptiness.c fullness, accounts, the invariant; heap_batch.c and heap_queue.c what is freed of other
 * heaps; heap_reclaim.c taking back; heap_refill.c malloc; heap_free.c free; heap_deferred.c what waits for a
 * lock; heap_fork.c fork.
 */
#ifndef HEAP_H
#define HEAP_H

#include "arena/superblock.h"

/* What the slow paths count. The counts of one heap are written by its threads without care for
 * losing a few. */
struct heap_counts {
    uint64_t slow_mallocs, slow_frees, remote_frees, transfers;
};

/* A block of the class, by the slow path; NULL and ENOMEM. Works from any state, started or not. */
void *heap_malloc_slow(unsigned class);

/* Frees a block that this thread's heap does not own, or on the locked path any block. */
void heap_free_slow(struct superblock *sb, void *block);

/* Looks at a superblock whose free blocks have come to its regroup_at. */
void heap_regroup(struct superblock *sb);

/* Is the block free, seen from a unowned state? For the closer look at one that seems to be. */
bool heap_block_is_free(struct superblock *sb, void *block);

/* Has what heaps have freed of others' arrive there. What waits for it, up to an eighth of a superblock of
 * each class a heap, counts as live. */
void heap_deliver_all(void);

/* What was freed into heaps by others, and what heaps without threads have, goes to the global heap, which
 * gives the empty ones to the arenas. Passes over heaps whose lock is held. */
void heap_give_idle(void);

/* Every heap gives all its superblocks to the global heap, which gives the empty ones to the arenas. */
void heap_give_all(void);

/* Heaps made, superblocks on them, and the sum of counts. */
struct heap_totals {
    size_t heaps, superblocks;
    struct heap_counts counts;
};
struct heap_totals heap_totals(void);

/* Do the accounts of every heap add up? For tests, while nobody else allocates. */
bool heap_is_valid(void);

/* fork: before it all locks of this layer are taken, in rank order. In the child the heaps of threads that
 * are no more are marked, and their memory is taken when memory is wanted. */
void heap_fork_prepare(void);
void heap_fork_parent(void);
void heap_fork_child(void);

#endif
