/* SPDX-License-Identifier: Apache-2.0 */
/* region.h: a reap's first chunk: how reaps are made, cleared, and end.
 *
 * Threads: the reap's own; the parent of one that is made or ends may be in use by others.
 */
#ifndef REGION_H
#define REGION_H

#include "region/reap_chunk.h"

/* Makes a reap in a chunk of its own, of as many bytes as its parent's children have come to need: in the
 * one given, from a cached_child, if it has so many (NULL: there is none). NULL: no memory (ENOMEM). */
struct reap *reap_region_create(const struct reap *parent, struct reap_chunk *chunk);

/* Makes one with a backing, the first chunk of so many bytes; in the buffer, if there is one, that is of
 * REAP_BUFFER_MIN at least. NULL: no memory (ENOMEM). */
struct reap *reap_region_create_from(const struct chunk_source *backing, size_t size);

/* Has the parent of a reap that ends learn from it what the next child needs. */
void reap_region_learn_size(const struct reap *reap);
static inline void reap_region_learn(const struct reap *reap)
{
    bool outgrown = reap->peak > reap_first_chunk(reap)->size;
    if (outgrown || atomic_load_explicit(&reap->parent->child_log, memory_order_relaxed) > 0)
        reap_region_learn_size(reap);
}

/* Gives back every chunk but the first one: the reap is gone, and its handle is known as dead. */
void reap_region_destroy(struct reap *reap);

/* Forgets every object and record, the name apart; keeps the first chunk and as many bytes of
 * others as `keep` says. */
void reap_region_clear(struct reap *reap);

#endif
