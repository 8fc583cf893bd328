/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h: which heap owns which superblock.
 *
 * Each id (rseq.h: a CPU, or a concurrency id) has a heap, and there is one global heap, as in Hoard
 * (ASPLOS 2000, section 3). Only this layer knows the emptiness invariant.
 *
 *     row of heap i:  | active superblock of class 1 | of class 2 | ...       read by the fast path
 *     heap i:         bins by class and fullness, empty superblocks, queued ones, a, u    under its lock
 *
 *     malloc:  active superblock  ->  fullest in the bin  ->  empty  ->  global heap  ->  arena
 *     free:    of this heap: into the superblock     of another heap: into this id's batch of the class, and
 *              from there to a malloc on this id, or in chains onto the superblocks' pending lists
 *
 * States of a superblock of heap i
 *   active    in the row; owner is i; mallocs and frees of threads with id i change its word
 *   owned     in a bin; owner is i; frees of threads with id i change its word
 *   empty     in `empty`, unowned
 *   leaving   unowned, on no list, then the global heap's or the arena's
 * A heap's lock does not keep out the fast path. One store in a restartable section puts a superblock into
 * the row, takes it out, or ends its ownership. The section checks that this thread still has id i
 * (rseq_store). So no other thread is inside a section on i, and a superblock that no section can reach any
 * more is unowned. For the heap of another id rseq_fence follows the store.
 *
 * The invariant, with f in eighths and fullness recorded in eighths (superblock.h):
 *     recorded free eighths of slots <= 8 K   or   <= f * slots
 * The free that takes a superblock to its next group restores the invariant: it gives superblocks that are at
 * least f empty to the global heap. The bytes that are free but not recorded are bounded too: bound.md has
 * the sum.
 *
 * On the locked path no superblock has an owner, a heap's lock covers its row, and heap_policy.h says which
 * heap a thread uses.
 */
#ifndef HEAP_H
#define HEAP_H

#include "arena/superblock.h"

/* The slow paths' counts. Threads of one heap write them without synchronization, and may lose a few. */
struct heap_counts {
    uint64_t slow_mallocs, slow_frees, remote_frees, transfers;
};

/* Allocates a block of the class by the slow path, in any state. NULL and ENOMEM without memory. */
void *heap_malloc_slow(unsigned class);

/* Frees a block that this thread's heap does not own, or on the locked path any block. */
void heap_free_slow(struct superblock *sb, void *block);

/* Files a superblock again, since its number of free blocks has reached regroup_at. */
void heap_regroup(struct superblock *sb);

/* Returns true if the block is free. Makes the superblock unowned meanwhile. For a block that looks free. */
bool heap_block_is_free(struct superblock *sb, void *block);

/* Delivers the blocks in all batches to their superblocks. A block in a batch counts as live: up to an eighth
 * of a superblock for each class and heap. */
void heap_deliver_all(void);

/* Sends home what heaps have kept, and not used, since the call before: blocks in batches to their
 * superblocks, and empty superblocks to the arenas. of_orphans, for the thread that purges: also blocks of
 * threads that this child of a fork does not have, and active superblocks. The caller holds no lock. */
void heap_send_idle_home(bool of_orphans);

/* Returns true if a heap keeps anything that heap_send_idle_home would look at. */
bool heap_keeps_any(void);

/* Gives superblocks with remote frees, and all superblocks of heaps without threads, to the global heap,
 * which gives the empty ones to the arenas. Skips heaps whose lock is held. */
void heap_give_idle(void);

/* Every heap gives all its superblocks to the global heap, which gives the empty ones to the arenas. */
void heap_give_all(void);

/* Heaps that exist, the slots of the superblocks on them, and the sums of their counts. */
struct heap_totals {
    size_t heaps, slots;
    struct heap_counts counts;
};
struct heap_totals heap_totals(void);

/* Returns true if the accounts of every heap add up. For tests, while no other thread allocates. */
bool heap_is_valid(void);

/* fork: the prepare handler takes all locks of this layer, in rank order. The child marks the heaps of
 * threads that it does not have. Later its slow paths take the memory of these heaps. */
void heap_fork_prepare(void);
void heap_fork_parent(void);
void heap_fork_child(void);

#endif
