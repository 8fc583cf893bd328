/* SPDX-License-Identifier: Apache-2.0 */
/* false_sharing.h: which free blocks of a used superblock a heap may give out without false sharing.
 *
 *     cache lines   |--------------|--------------|--------------|
 *     blocks, 48 B  | live    | free    | free     | free    |
 *                     ^ line 0 is part live: the second block waits     ^ line 2 and the fourth block may go
 *
 * A superblock that is partly used may come to another heap. Then its lines with a live block may be in use
 * on another processor (thesis 7.2.3 describes this and did not build it). Blocks that live at that time are
 * foreign until they are freed. A free block waits while any of its lines has a foreign block. A block that
 * the heap gives out shares no line with a foreign one, and never will: after its free it can be given out at
 * once. After the last foreign block is freed, the superblock is the heap's like any other. Classes of a
 * multiple of 64 bytes share no lines.
 *
 * Superblocks on the global heap have no notes. There the free blocks of lines that are not wholly free are
 * on the pending list.
 *
 * Vocabulary
 *   foreign   allocated before the heap got the superblock, and still live
 *   waiting   free, but on a line with a foreign block; on no list, counted in the superblock's pending word
 *
 * Threads: the caller holds the lock of the heap that the superblock is on, or is coming to.
 */
#ifndef FALSE_SHARING_H
#define FALSE_SHARING_H

#include "arena/superblock.h"

static inline bool false_sharing_possible(unsigned class) { return sizeclasses[class].size % LINE != 0; }

/* Leaves only blocks of wholly free lines on an unowned superblock's free list, and puts the rest on its
 * pending list. Carving then starts with a line of its own. */
void false_sharing_hold_back(struct superblock *sb);

/* Begins notes on an unowned superblock. Blocks that are neither on its free list nor still to be carved are
 * foreign; so are pending ones, until false_sharing_release gets them. The caller sets role.sharing. */
void false_sharing_begin(const struct superblock *sb);

/* Takes a chain of freed blocks. Returns those of them, and of the waiting ones, that may be given out. */
struct chain false_sharing_release(struct superblock *sb, const struct chain *freed);

/* Returns true if no block is foreign any more. Then none waits, and false_sharing_end may be called. */
bool false_sharing_is_over(const struct superblock *sb);

/* Returns true if the block waits. */
bool false_sharing_holds(const struct superblock *sb, const void *block);

/* Ends the notes, which role.sharing no longer names. Waiting blocks become pending. */
void false_sharing_end(struct superblock *sb);

/* Ends the notes on an unowned superblock that leaves its heap, if there are any. */
void false_sharing_forget(struct superblock *sb);

#endif
