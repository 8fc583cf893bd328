/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_source.h: where a reap made by reapCreateWith has its chunks from.
 *
 *     a buffer          | first chunk |                       no other chunks, large objects are in it too
 *     a source          | first chunk |   | chunk |  ...      from the user's function, and back to it
 *     a buffer, then a source
 *     neither           | first chunk |   | chunk |  ...      the backend's, of other sizes than usual
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
    void *buffer; /* the first chunk, where it is in one */
};

/* May chunks of the backend be among its chunks? */
static inline bool chunk_source_is_hoard(const struct chunk_source *backing)
{
    return !backing->take && !backing->buffer;
}

/* A chunk; as chunk_alloc. */
void *chunk_source_take(const struct chunk_source *backing, size_t size, size_t *got, bool *zeroed);

/* A chunk of the user's goes back. */
void chunk_source_give(const struct chunk_source *backing, void *chunk, size_t size);

#endif
