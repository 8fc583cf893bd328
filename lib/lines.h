/* lines.h: which free blocks of a used superblock may be given out without false sharing.   (floor 2)
 *
 *     cache lines   |--------------|--------------|--------------|
 *     blocks, 48 B  | live    | free    | free     | free    |
 *                     ^ line 0 is part live: the second block waits     ^ line 2 and the fourth block may go
 *
 * When a superblock that is partly used comes to another heap, lines of which some block is live may be
 * in use on another processor. Only blocks all of whose lines are wholly free are given out (thesis
 * 7.2.3 describes this and did not build it); the others wait on the pending list, until a later look finds
 * their lines free too. Classes of a multiple of 64 bytes share no lines.
 *
 * Threads: what is looked at is a chain that the caller holds, or a quiet superblock.
 */
#ifndef LINES_H
#define LINES_H

#include "superblock.h"

enum { LINE = 64 }; /* bytes of a cache line */

/* Do blocks of the class share lines with each other? */
static inline bool lines_are_shared(unsigned class) { return sizeclasses[class].size % LINE != 0; }

/* Takes the blocks out of a chain whose lines have no block but those of the chain and ones never carved. */
struct chain lines_take_whole(const struct superblock *sb, struct chain *chain);

/* Leaves on a quiet superblock's free list only blocks of wholly free lines, and puts the rest on its
 * pending list. What is to be carved starts with a line of its own afterwards. */
void lines_hold_back(struct superblock *sb);

#endif
