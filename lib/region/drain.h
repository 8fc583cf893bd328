/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h: chunks that a reap can do without.
 *
 * Where objects are freed here and there, chunks grow emptier and none is given back. So a chunk is drained
 * when less than half of it is live and the other chunks have room for that and some more: its free blocks
 * leave the free lists, it only loses objects, and it is given back with its last one. Before the reap grows,
 * draining chunks are taken into use again.
 *
 * A reap that is about to grow, and of which a quarter is free, drains all its chunks and takes them into use
 * again one by one. This joins free neighbours, which frees that were each followed by an allocation have not
 * done. Where it was in vain, it is not done again before the reap has grown by an eighth.
 *
 * The bitmaps alone tell the free blocks of a draining chunk. A free there touches no object, and the end of
 * the draining joins blocks a run at a time. So where most chunks are to be drained, or most have blocks to
 * join, all are drained at once, by emptying the free lists: to take each block off its list would touch it
 * and both neighbours on the list.
 *
 * Threads: the reap's own.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include "region/reap_chunk.h"

/* May the reap do without the free blocks of a chunk, in which less than half lives? */
bool reap_drain_is_due(const struct reap *reap, const struct reap_chunk *chunk);

/* Drains a chunk, which has no hole. */
void reap_drain_begin(struct reap *reap, struct reap_chunk *chunk);

/* Takes a draining chunk into use again. */
void reap_drain_end(struct reap *reap, struct reap_chunk *chunk);

/* Takes the draining chunk with the most free bytes into use. False: there is none. */
bool reap_drain_end_one(struct reap *reap);

/* Is that part, a half or a quarter, of the chunks in use in which something was freed free? */
bool reap_drain_part_is_free(const struct reap *reap, unsigned part);

/* Is one chunk to be drained, and so many others that all may as well be? */
bool reap_drain_most_are_due(const struct reap *reap);

/* Are so many free blocks to be joined that all free lists may as well be filled anew? */
bool reap_drain_all_is_due(const struct reap *reap);

/* Empties the free lists and drains every chunk with free blocks but the current one, whose blocks it joins.
 */
void reap_drain_all(struct reap *reap);

#endif
