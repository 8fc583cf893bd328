/* SPDX-License-Identifier: Apache-2.0 */
/* false_sharing.h: which free blocks of a used superblock may be given out without false sharing.
 *
 *     cache lines   |--------------|--------------|--------------|
 *     blocks, 48 B  | live    | free    | free     | free    |
 *                     ^ line 0 is part live: the second block waits     ^ line 2 and the fourth block may go
 *
 * When a superblock that is partly used comes to another heap, lines of which some block is live may be
 * in use on another processor (thesis 7.2.3 describes this and did not build it). Blocks that live then are
 * foreign until they are freed; a free block with a foreign one on any of its lines waits. A block that the
 * heap gives out has none, and gets none: so what is freed of those goes at once. With the last foreign block
 * the superblock is the heap's like any other. Classes of a multiple of 64 bytes share no lines.
 *
 * On the global heap there are no notes of that: what is free and in no wholly free line is on the pending
 * list there.
 *
 * Vocabulary
 *   foreign   lives since before the heap got the superblock
 *   waiting   free, but on a line with a foreign block; on no list, counted in the superblock's pending word
 *
 * Threads: under the lock of the heap that the superblock is on, or on the way to it.
 */
#ifndef FALSE_SHARING_H
#define FALSE_SHARING_H

#include "arena/superblock.h"

/* Do blocks of the class share lines with each other? */
static inline bool false_sharing_possible(unsigned class) { return sizeclasses[class].size % LINE != 0; }

/* Leaves on a unowned superblock's free list only blocks of wholly free lines, and puts the rest on its
 * pending list. What is to be carved starts with a line of its own afterwards. */
void false_sharing_hold_back(struct superblock *sb);

/* Begins notes on a unowned superblock: what is neither on its free list nor still to be carved is foreign,
 * also what is pending, until false_sharing_release is told of it. Their number for role.sharing_notes; 0: no
 * memory. */
unsigned false_sharing_begin(const struct superblock *sb);

/* Of a chain of blocks that were freed, and of those that wait, what may go; the others wait. */
struct chain false_sharing_release(struct superblock *sb, const struct chain *freed);

/* Are there no foreign blocks any more? Then nothing waits, and false_sharing_end may be called. */
bool false_sharing_is_over(const struct superblock *sb);

/* Is it one that waits? */
bool false_sharing_holds(const struct superblock *sb, const void *block);

/* Ends the notes, whose number is not role.sharing_notes any more; what waits becomes pending. */
void false_sharing_end(struct superblock *sb, unsigned number);

/* The same for a unowned superblock that leaves its heap, if there are notes on it. */
void false_sharing_forget(struct superblock *sb);

#endif
