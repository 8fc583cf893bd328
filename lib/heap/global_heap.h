/* SPDX-License-Identifier: Apache-2.0 */
/* global_heap.h: the global heap, and a heap for each last cache.
 *
 * Heap 0 of the paper: superblocks that are at least f empty, which the heaps give up under the emptiness
 * invariant, in bins by class. All of them are unowned, so a free of one of their blocks goes to the pending
 * list (or, on the locked path, takes a lock here). Empty superblocks serve any class; they go back to the
 * arenas at once, which keep them for a while. In a partly used superblock only cache lines that are wholly
 * free count as free and can be given out (false_sharing.h).
 *
 * Where groups of CPUs have a last cache each (topology.h), each such cache has a heap of its own before the
 * global one. So the CPUs of a cache trade superblocks, empty ones of one slot too, among themselves first
 * (thesis 8.2):
 *
 *     heaps of CPUs      | 0 | 1 | 2 | 3 |     | 4 | 5 | 6 | 7 |
 *                             |     ^                |     ^
 *     heaps of caches     at most GLOBAL_HEAP_CACHE_MAX    at most GLOBAL_HEAP_CACHE_MAX
 *                             |     ^                |     ^
 *     the global heap       the rest; empty superblocks go on to the arenas
 *
 * So A(t) of the bound grows by a constant. With one cache there are no such heaps. Elsewhere in the library
 * "the global heap" means all of these.
 *
 * Locking: each level has one lock; only fork takes several. On the rseq paths a thread seldom waits for it:
 * global_heap_give pushes a superblock onto the level's list of arrivals, and whoever has the lock files it.
 * A thread that wants a superblock while a stopped thread has the lock goes on without one,
 * GLOBAL_HEAP_DETOURS times in a row, and then waits.
 */
#ifndef GLOBAL_HEAP_H
#define GLOBAL_HEAP_H

#include "arena/superblock.h"

/* In slots. A cache's heap keeps 1 MiB, which all CPUs of this last cache find in it. */
enum { GLOBAL_HEAP_CACHE_MAX = 16, GLOBAL_HEAP_DETOURS = 32 };

/* Gives an unowned superblock that is on no list. It comes from the heap `id`, and arrives with the next
 * global_heap_settle. The caller may hold any lock. */
void global_heap_give(struct superblock *sb, unsigned id);

/* Files superblocks that have arrived. An empty one goes to the arenas, unless a cache's heap keeps it. Skips
 * a level whose lock another thread has: that thread files them. The caller holds no lock of a heap. */
void global_heap_settle(void);

/* For heap `id`: the class's fullest superblock with an eighth free, or an empty one; in transit; or NULL. */
struct superblock *global_heap_take(unsigned class, unsigned id);

/* Looks at the queued superblocks, and gives the empty ones to the arenas. One that has gone to a heap since,
 * with blocks pending, is queued there. */
void global_heap_take_queued(void);

/* Frees a block on the locked path. False: the superblock is not, or no longer, here. */
bool global_heap_free(struct superblock *sb, void *block);

/* Moves what caches' heaps have to the global one, collects pending blocks, gives empty ones to arenas. */
void global_heap_collect(void);

/* Gives the empty superblocks of caches' heaps that took none since the call before to the arenas. */
void global_heap_give_unused(void);

/* Returns true if a cache's heap has empty superblocks. */
bool global_heap_keeps_any(void);

/* Returns true if the block is free. For a block whose superblock is on no other heap. */
bool global_heap_has_free(struct superblock *sb, const void *block);

size_t global_heap_slots(void);

/* Returns true if the accounts add up. For tests, while no other thread allocates. */
bool global_heap_is_valid(void);

void global_heap_fork_prepare(void);
void global_heap_fork_parent(void);
void global_heap_fork_child(void);

#endif
