/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_provider.h: memory for reaps, and the way back from any pointer to it.
 *
 * A chunk is a block of the backend that one reap carves up. Chunks come from superblocks and
 * spans marked as such, so that free(), reapOf() and the misuse checks can tell, for any bit
 * pattern whatever, whether it points into a chunk, and into which one, without reading user
 * memory and without faulting.
 *
 *     superblock of chunks      | chunk | chunk | chunk | ...      8, 16 or 32 KiB each
 *     span                      |            chunk            |    64 KiB and more
 *
 * A chunk that is not live (freed, or never handed out) may still be found by chunk_of: the reap
 * keeps a tag in its own header, past CHUNK_CLOBBERED bytes, and clears it before it frees.
 *
 * Threads: any call from any thread. Lock rank: a caller may hold locks of reaps only.
 */
#ifndef CHUNK_PROVIDER_H
#define CHUNK_PROVIDER_H

#include "hoard/reap_hooks.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CHUNK_MIN = 8 * 1024, /* bytes; the smallest chunk, and the alignment of every chunk */
    CHUNK_CLOBBERED = 16  /* bytes at the start of a free chunk that the backend writes to */
};

/* Reads the options, as the first chunk_alloc would. */
void chunk_start(void);

/* A chunk of at least size bytes (rounded up to 8, 16 or 32 KiB, or to a multiple of 64 KiB),
 * aligned to CHUNK_MIN, contents undefined. Sets *got to the chunk's bytes. *zeroed tells whether
 * all of it is known to be zero. NULL: no memory (errno ENOMEM). Either out pointer may be NULL. */
void *chunk_alloc(size_t size, size_t *got, bool *zeroed);

/* Gives a chunk back. errno is kept. */
void chunk_free(void *chunk);

/* Grows or shrinks a chunk where it stands, as far as this is possible: true when its size is now
 * at least size (or, shrinking, has been cut to what size needs); *got is its size either way. */
bool chunk_resize(void *chunk, size_t size, size_t *got);

/* The chunk that holds pointer, and its bytes; NULL when pointer is in no chunk. Takes any value. */
void *chunk_of(const void *pointer, size_t *got);

/* Between the two no memory leaves the process that chunks are in: for those who look at what other threads
 * may be giving back. Nothing may be allocated, freed or lent meanwhile, and there may be little to do, since
 * who purges, unmaps or moves memory waits. */
void chunk_freeze(void);
void chunk_thaw(void);

/* Frozen: may so many bytes be read? What is in them may change all the same. Takes any values. */
bool chunk_is_readable(const void *start, size_t size);

/* Frozen: calls fn for every chunk that may be live, approximate while others run; stops when fn is not 0
 * and returns that. */
int chunk_walk(int (*fn)(void *chunk, size_t size, void *arg), void *arg);

#endif
