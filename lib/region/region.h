/* SPDX-License-Identifier: Apache-2.0 */
/* region.h: a reap's first chunk, and with it how reaps are created, cleared and destroyed.
 *
 * Threads: the reap's own. Other threads may use the parent meanwhile.
 */
#ifndef REGION_H
#define REGION_H

#include "region/reap_chunk.h"

/* Creates a reap in a first chunk of as many bytes as its parent's children have come to need. Uses the given
 * chunk, a cached child (or NULL), if it has that size. NULL: no memory (ENOMEM). */
struct reap *reap_region_create(const struct reap *parent, struct reap_chunk *chunk);

/* Creates a reap with a chunk source, and a first chunk of size bytes. If the source has a buffer, the first
 * chunk lies in it, and size is the buffer's, at least REAP_BUFFER_MIN. NULL: no memory (ENOMEM). */
struct reap *reap_region_create_from(const struct chunk_source *backing, size_t size);

enum {
    REAP_VOTES_MIN = -8,   /* no more small children than these count */
    REAP_VOTES_SHRINK = -4 /* at which the first chunk of the next child is halved, if it was doubled */
};

/* Votes, for a reap that ends, on how big its parent's next child's first chunk should be. */
void reap_region_learn_size(const struct reap *reap);
static inline void reap_region_learn(const struct reap *reap)
{
    bool outgrown = reap->peak > reap_first_chunk(reap)->size;
    uint8_t votes = atomic_load_explicit(&reap->parent->child_votes, memory_order_relaxed);
    uint8_t own = atomic_load_explicit(&reap->child_votes, memory_order_relaxed);
    uint8_t settled = (uint8_t)(REAP_VOTES_MIN * REAP_VOTE + reap_step(own) * REAP_BELOW);
    if (outgrown || votes != settled) reap_region_learn_size(reap); /* else a small child changes nothing */
}

/* Gives back every chunk but the first one. The reap has ended, and calls recognize its handle as dead. */
void reap_region_destroy(struct reap *reap);

/* Forgets every object, and every record but the name. Keeps the first chunk, and `keep` bytes of others. */
void reap_region_clear(struct reap *reap);

/* Gives back spares until at most `keep` bytes of them are left, the cached child, and what reap_free_trim
 * does. Returns the bytes. */
size_t reap_region_trim(struct reap *reap, size_t keep);

#endif
