/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_source.h: the source from which a reap made by reapCreateWith takes its chunks.
 *
 *     a buffer          | first chunk |                       no other chunk: large objects lie in it too
 *     a source          | first chunk |   | chunk |  ...      from the user's function, and back to it
 *     a buffer, then a source
 *     neither           | first chunk |   | chunk |  ...      from the backend, but of other sizes than usual
 *
 * Threads: the reap's own.
 */
#ifndef CHUNK_SOURCE_H
#define CHUNK_SOURCE_H

#include "base/base.h"

enum { REAP_SOURCE_ALIGN = 4096 }; /* bytes; sizes and addresses of a source's chunks are multiples */

struct chunk_source {
    size_t max_chunk; /* bytes; chunks double up to this */
    void *(*take)(size_t size, void *arg);
    void (*give)(void *chunk, size_t size, void *arg);
    void *arg;
    void *buffer; /* of the user, for the first chunk; or NULL */
};

/* Returns true if the reap's chunks come from the backend. */
static inline bool chunk_source_is_hoard(const struct chunk_source *backing)
{
    return !backing->take && !backing->buffer;
}

/* Returns a chunk as chunk_alloc does, but from the source. */
void *chunk_source_take(const struct chunk_source *backing, size_t size, size_t *got, bool *zeroed);

/* Gives a chunk in user memory back to the source; the buffer is only forgotten. */
void chunk_source_give(const struct chunk_source *backing, void *chunk, size_t size);

#endif
