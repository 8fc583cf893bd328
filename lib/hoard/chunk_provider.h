/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_provider.h: memory for reaps, and the way back from any pointer to its chunk.
 *
 * A chunk is a block of the backend that one reap carves up. Chunks come from superblocks and spans of their
 * own kind. So free(), reapOf() and the misuse checks can tell for any bit pattern whether it points into a
 * chunk, and into which one. They do not read user memory for this, and do not fault.
 *
 *     superblock of chunks      | chunk | chunk | chunk | ...      1, 8, 16 or 32 KiB each
 *     span                      |            chunk            |    64 KiB and more
 *
 * chunk_of may still find a chunk that is not live (freed, or never handed out). Therefore the reap keeps a
 * tag in its own header, past CHUNK_CLOBBERED bytes, and clears the tag before it frees the chunk.
 *
 * Threads: any call from any thread. Lock rank: a caller may hold locks of reaps only.
 */
#ifndef CHUNK_PROVIDER_H
#define CHUNK_PROVIDER_H

#include "hoard/reap_hooks.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CHUNK_MIN = 1024,    /* bytes; the smallest chunk, and the least alignment of a chunk */
    CHUNK_CLOBBERED = 16 /* bytes at the start of a free chunk that the backend writes to */
};

/* Reads the options, as the first chunk_alloc would. */
void chunk_start(void);

/* Allocates a chunk of at least size bytes (rounded up to 1, 8, 16 or 32 KiB, or to a multiple of 64 KiB),
 * aligned to CHUNK_MIN, and greater ones to 8 KiB. Its contents are undefined. Sets *got to the chunk's
 * bytes, and *zeroed to whether all of it is known to be zero. Either out pointer may be NULL. NULL without
 * memory (errno ENOMEM). */
void *chunk_alloc(size_t size, size_t *got, bool *zeroed);

/* Gives a chunk back. errno is kept. */
void chunk_free(void *chunk);

/* Grows or shrinks a chunk where it stands, as far as this is possible. True: its size is now at least size
 * (or, shrinking, has been cut to what size needs). Sets *got to its size in either case. */
bool chunk_resize(void *chunk, size_t size, size_t *got);

/* Lets a large chunk grow to at least size bytes elsewhere: its pages move, or a copy is made. Returns the
 * new place, and sets *got as above. NULL: it is as it was, or it is no large chunk. */
void *chunk_move(void *chunk, size_t size, size_t *got);

/* Gives unused memory back to the OS while there is more than `keep` bytes of it, but at most `most`. */
void chunk_purge(size_t keep, size_t most);

/* The chunk that holds pointer, and its bytes; NULL if pointer is in no chunk. Takes any value. Of an object
 * that lies apart (apart.h) only the start has a chunk; chunk_around finds it for any pointer into the
 * object, also into a freed one, but then takes a time in proportion to the greatest object. */
void *chunk_of(const void *pointer, size_t *got);
void *chunk_around(const void *pointer);

/* Between these two calls no memory of chunks leaves the process: for code that reads chunks which other
 * threads may give back. This thread must not allocate, free, or enter user memory meanwhile, and it should
 * be short, since threads that purge, unmap or move memory wait. */
void chunk_freeze(void);
void chunk_thaw(void);

/* Frozen: returns true if these bytes are readable. Other threads may still change them. Takes any values. */
bool chunk_is_readable(const void *start, size_t size);

#endif
