/* SPDX-License-Identifier: Apache-2.0 */
/* bound.h: the bound of doc/design/bound.md, computed; and whether all that it is made of holds.
 *
 * With f the empty fraction, K the slack, S a superblock, C the classes in use, for one heap
 *
 *     recorded        free eighths of bins and empty ones   <= max(8 K, 8 f a)      invariant
 *     unrecorded      free beyond its group, each in a bin  <  S/8
 *     unposted        pending and not queued, each          <  f S and S/4, by lines share S/16
 *     held back       by a live block, by lines             <  share blocks
 *     rest            of each superblock, no block          <= rest(class)
 *     active          superblocks that count as full        <= C
 *     in batches     counts as live until it arrives       <= S/8 for each class
 *     caches' heaps   where there are several, each         <= 16
 *
 * where share is the most blocks that lie in the lines of one, itself included; 1 when blocks are whole
 * lines.
 */
#ifndef BOUND_H
#define BOUND_H

#include "heap/heap_table.h"

/* Bytes held at most by a program of so many classes, whose superblocks have so many slots, on so many heaps,
 * of which the most that was ever live is `live` bytes. */
double bound_of(unsigned classes, unsigned slots, unsigned share, unsigned heaps, size_t live);

/* The same by each byte that is live, when they are very many. */
double bound_slope(unsigned classes, unsigned share);

/* The most blocks that one live block can hold back. */
unsigned most_held_back(unsigned class);

/* How close each part came to what it may be at most, over all looks; 1 is the bound itself. Of `active`: the
 * slots of active superblocks. */
struct extremes {
    double recorded, unrecorded, unposted, held_back, active, heap;
    unsigned looks;
};
extern struct extremes extremes;

/* Looks at every heap; to be called when what was queued has been collected: as memory is asked of the OS. */
void extremes_look(void);

#endif
