/* global.h: the global heap.   (floor 4)
 *
 * Heap 0 of the paper: superblocks that are at least f empty, given up by the heaps under the
 * emptiness invariant, on bins by class. All of them are quiet, so that a free of a block of
 * theirs goes to the pending list (or, on the locked path, takes this lock). Superblocks that are
 * wholly empty serve any class and go back to the arenas at once, which keep them for a while. Of the
 * others only lines that are wholly free count as free and will be given out (lines.h).
 *
 * Locking: one lock, which ranks after all heaps' locks and before the arenas'.
 */
#ifndef GLOBAL_H
#define GLOBAL_H

#include "superblock.h"

/* Puts a quiet superblock that is on no list here; an empty one goes to the arenas. */
void global_give(struct superblock *sb);

/* The fullest superblock of the class with an eighth free, quiet, on no list and of HEAP_NONE; or NULL. What
 * was posted here and has left for a heap since, with blocks pending, is passed to `forward`, which takes no
 * lock. */
struct superblock *global_take(unsigned class, void (*forward)(struct superblock *sb));

/* Superblocks with much pending that are on no heap, or were on none just now (heap_post). */
extern HIDDEN _Atomic(struct superblock *) global_posted;

/* Frees a block on the locked path: false when the superblock is not, or no longer, here. */
bool global_free(struct superblock *sb, void *block);

/* Looks at all superblocks for pending blocks, and gives the empty ones to the arenas. */
void global_collect(void (*forward)(struct superblock *sb));

/* Is the block free? For one whose superblock is on no other heap. */
bool global_has_free(struct superblock *sb, const void *block);

size_t global_superblocks(void);

void global_fork_prepare(void);
void global_fork_parent(void);
void global_fork_child(void);

#endif
