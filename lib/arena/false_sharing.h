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
static inline bool lines_are_shared(unsigned class) { return sizeclasses[class].size % LINE != 0; }

/* Leaves on a quiet superblock's free list only blocks of wholly free lines, and puts the rest on its
 * pending list. What is to be carved starts with a line of its own afterwards. */
void lines_hold_back(struct superblock *sb);

/* Begins notes on a quiet superblock: what is neither on its free list nor still to be carved is foreign,
 * also what is pending, until lines_free is told of it. Their number for role.by_lines; 0: no memory. */
unsigned lines_begin(const struct superblock *sb);

/* Of a chain of blocks that were freed, and of those that wait, what may go; the others wait. */
struct chain lines_free(struct superblock *sb, const struct chain *freed);

/* Are there no foreign blocks any more? Then nothing waits, and lines_end may be called. */
bool lines_are_own(const struct superblock *sb);

/* Is it one that waits? */
bool lines_hold(const struct superblock *sb, const void *block);

/* Ends the notes, whose number is not role.by_lines any more; what waits becomes pending. */
void lines_end(struct superblock *sb, unsigned number);

/* The same for a quiet superblock that leaves its heap, if there are notes on it. */
void lines_forget(struct superblock *sb);

#endif
