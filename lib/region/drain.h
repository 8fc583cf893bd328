/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h: draining chunks, which a reap can do without.
 *
 * When a program frees objects here and there, all chunks grow emptier, but none becomes empty. So the reap
 * drains a chunk of which less than half is live, if the other chunks have room for its objects and some
 * more. The free blocks of a draining chunk leave the free lists. So the chunk only loses objects, and the
 * reap gives it back with the last one. Before the reap grows, it takes draining chunks into use again.
 *
 * A reap that is about to grow, and of which a quarter is free, drains all its chunks and takes them into use
 * again one by one. This joins free neighbours that no sweep has joined: a chunk is not due for a sweep while
 * an allocation follows each free. If it found nothing to join, the reap grows by an eighth before it tries
 * again.
 *
 * Only the bitmaps tell the free blocks of a draining chunk. So a free there touches no object, and the end
 * of the draining joins a whole run of blocks at a time. If most chunks are to be drained, or most have
 * blocks to join and are big or half free, the reap drains all of them at once: it empties the free lists. To
 * take each block off its list would touch that block and both of its neighbours on the list.
 *
 * Threads: the reap's own.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include "region/reap_chunk.h"

/* Returns true if the reap can do without this chunk's free blocks. At least half of the chunk must be
 * free. */
bool reap_drain_is_due(const struct reap *reap, const struct reap_chunk *chunk);

/* Drains a chunk that does not have the hole. */
void reap_drain_begin(struct reap *reap, struct reap_chunk *chunk);

/* Joins the free blocks of a draining chunk and puts them on the free lists again. */
void reap_drain_end(struct reap *reap, struct reap_chunk *chunk);

/* Takes the draining chunk with the most free bytes into use. False: there is none. */
bool reap_drain_end_one(struct reap *reap);

/* Returns true if 1/part of those chunks in use in which something was freed is free. */
bool reap_drain_part_is_free(const struct reap *reap, unsigned part);

/* Returns true if draining all half-free chunks costs less than draining one. */
bool reap_drain_most_are_due(const struct reap *reap);

/* Returns true if rebuilding all free lists is cheaper than sweeping the chunks that wait, big or half
 * free. */
bool reap_drain_all_is_due(const struct reap *reap);

/* Empties the free lists and drains every chunk with free blocks, except for the current one, in which it
 * joins them. */
void reap_drain_all(struct reap *reap);

#endif
