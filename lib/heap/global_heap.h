/* SPDX-License-Identifier: Apache-2.0 */
/* global_heap.h: the global heap, and those of the caches.
 *
 * Heap 0 of the paper: superblocks that are at least f empty, given up by the heaps under the
 * emptiness invariant, on bins by class. All of them are unowned, so that a free of a block of
 * theirs goes to the pending list (or, on the locked path, takes a lock here). Superblocks that are
 * wholly empty serve any class and go back to the arenas at once, which keep them for a while. Of the
 * others only lines that are wholly free count as free and will be given out (false_sharing.h).
 *
 * Where groups of CPUs have a last cache each (topology.h), each such cache has a heap of its own before the
 * global one, so that superblocks, empty ones too, are traded among its CPUs first (thesis 8.2):
 *
 *     heaps of CPUs      | 0 | 1 | 2 | 3 |     | 4 | 5 | 6 | 7 |
 *                             |     ^                |     ^
 *     heaps of caches     at most GLOBAL_HEAP_CACHE_MAX    at most GLOBAL_HEAP_CACHE_MAX
 *                             |     ^                |     ^
 *     the global heap       the rest; then the arenas, which have what is empty
 *
 * So A(t) of the bound grows by a constant. With one cache there are no such heaps. Here "the global heap"
 * means all of this to the rest of the house.
 *
 * Locking: one lock each; only fork takes several. Nobody waits for it on the fast path's machines: what is
 * given is pushed onto the level's list of arrivals, which whoever has the lock files; and who wants a
 * superblock while a thread that does not run has the lock goes on without, GLOBAL_HEAP_DETOURS times, and
 * then waits.
 */
#ifndef GLOBAL_HEAP_H
#define GLOBAL_HEAP_H

#include "arena/superblock.h"

/* What a cache's heap keeps: 1 MiB, which all of a last cache's CPUs find in it. */
enum { GLOBAL_HEAP_CACHE_MAX = 16, GLOBAL_HEAP_DETOURS = 32 };

/* Puts a unowned superblock that is on no list here, and comes from the heap `id` (HEAP_NONE: from none). It
 * arrives with the next global_heap_settle. Any lock may be held. */
void global_heap_give(struct superblock *sb, unsigned id);

/* Files what has arrived; without a cache's heap, an empty one goes to the arenas. Passes over what another
 * thread has the lock of, which does it then. No lock of a heap is held. */
void global_heap_settle(void);

/* For heap `id`: the fullest superblock of the class with an eighth free, or an empty one, unowned, on no
 * list and of HEAP_NONE; or NULL. What was queued here and has left for a heap since, with blocks pending, is
 * passed to `forward`, which takes no lock. */
struct superblock *global_heap_take(unsigned class, unsigned id, void (*forward)(struct superblock *sb));

/* role.sharing_notes, where blocks share lines, of a superblock here, or just taken, all of which heap `id`
 * owned when it gave it: that heap may go on with it. In all others lines are held back (false_sharing.h). */
static inline uint16_t global_left_by(unsigned id) { return (uint16_t)(id + 1); }

/* Superblocks with much pending that are on no heap, or were on none just now (heap_enqueue). */
extern HIDDEN _Atomic(struct superblock *) global_heap_queued;

/* Frees a block on the locked path: false when the superblock is not, or no longer, here. */
bool global_heap_free(struct superblock *sb, void *block);

/* Has all superblocks on the global heap, looks at them for pending blocks, and gives the empty ones to the
 * arenas. */
void global_heap_collect(void (*forward)(struct superblock *sb));

/* Is the block free? For one whose superblock is on no other heap. */
bool global_heap_has_free(struct superblock *sb, const void *block);

size_t global_heap_superblocks(void);

/* For tests, while nobody else allocates. */
bool global_heap_is_valid(void);

void global_heap_fork_prepare(void);
void global_heap_fork_parent(void);
void global_heap_fork_child(void);

#endif
