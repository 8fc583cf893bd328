/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h: chunks that a reap can do without.
 *
 * Where objects die here and there, chunks grow emptier and none goes. So when less than half of a chunk
 * lives, and the others have room for that and some more, it is closed: its free blocks are in no bins, so it
 * only loses objects, and goes with the last one. Before a reap grows, closed chunks are opened again.
 *
 * And before a reap grows of which a quarter is free, all are closed, and opened one by one: what is free in
 * them is joined so, which frees that were followed by as many allocations have not had done. Where that was
 * in vain, it is not done again before the reap has grown by an eighth.
 *
 * A closed chunk's free blocks are known from its bitmaps alone: a free there touches no object, and opening
 * it joins them a run at a time. So where most chunks would be closed, or most have blocks to be joined, all
 * are closed at once, which is emptying the bins: to take each block out of its bin would touch it and both
 * its neighbours there.
 *
 * Threads: the reap's own.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include "region/reap_chunk.h"

/* May the reap do without the free blocks of a chunk, in which less than half lives? */
bool reap_closing_is_due(const struct reap *reap, const struct reap_chunk *chunk);

/* Closes a chunk, which has no hole. */
void reap_closing_close(struct reap *reap, struct reap_chunk *chunk);

/* Opens a closed chunk. */
void reap_closing_open(struct reap *reap, struct reap_chunk *chunk);

/* Opens the one in which most is free. False: there is none. */
bool reap_closing_reopen(struct reap *reap);

/* Is that part, a half or a quarter, of the open chunks in which something was freed free? */
bool reap_closing_part_is_free(const struct reap *reap, unsigned part);

/* Is one to be closed, and so many others are that all may as well be? */
bool reap_closing_most_are_due(const struct reap *reap);

/* Is so much of what is free to be joined that all bins may as well be filled anew? */
bool reap_closing_all_is_due(const struct reap *reap);

/* Empties the bins and closes every chunk with free blocks but the current one, whose blocks are joined. */
void reap_closing_close_all(struct reap *reap);

#endif
