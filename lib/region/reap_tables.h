/* SPDX-License-Identifier: Apache-2.0 */
/* reap_tables.h: the tables of a reap as a heap.
 *
 * The free lists, by size (freelist.h), and the way from an object to its chunk. The backend tells that
 * (chunk_of), and the chunk cache remembers what it told, so that most frees do not ask:
 *
 *     address   | ... | 16 KiB | 16 KiB | 16 KiB | ...        chunk_cache[address / 16 KiB % entries]
 *                          \       \
 *     cache       | chunk | chunk | no_chunk | chunk | ...
 *
 * There are 64 entries in the reap itself, and more in memory of its own where the chunks of a bigger one met
 * in an entry; one that knows nothing points to a chunk of no size. Fast paths see these tables through
 * reap->tables: a reap that has freed nothing shares tables that know nothing with all others, so its own
 * need not be cleared when it is made, and no test asks whether they were.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_TABLES_H
#define REAP_TABLES_H

#include <stddef.h>
#include <stdint.h>

struct reap_chunk;

enum {
    REAP_CHUNK_CACHE = 64,                 /* entries of the table of chunks by address, at first */
    REAP_CHUNK_CACHE_MAX = 64 * 1024,      /* and at most */
    REAP_CHUNK_CACHE_SHIFT = 14,           /* and there is one for each 16 KiB */
    REAP_EXACT_LISTS = 32,                 /* free lists of one size each: 1 to 32 units */
    REAP_FREELISTS = REAP_EXACT_LISTS + 22 /* and two to each doubling, up to a whole chunk */
};

/* A free block, as it lies in memory. */
struct reap_block {
    struct reap_block *next;
    struct reap_block *prev;
    size_t units; /* of one that has more than REAP_EXACT_LISTS */
};

/* What heap mode looks up. */
struct reap_tables {
    struct reap_block *freelists[REAP_FREELISTS]; /* the first free block of each size, or NULL */
    size_t cache_last; /* of the cache's entries: their number, a power of two, less one */
    struct reap_chunk
        *chunk_cache[REAP_CHUNK_CACHE]; /* by address; never NULL. There may be more: reap_cached_chunk() */
};

/* The bytes of tables with so many entries. */
static inline size_t reap_tables_size(size_t entries)
{
    return offsetof(struct reap_tables, chunk_cache) + entries * sizeof(struct reap_chunk *);
}

/* All entries, more than the array has perhaps. */
static inline struct reap_chunk **reap_chunk_cache(struct reap_tables *tables)
{
    return (struct reap_chunk **)((char *)tables + offsetof(struct reap_tables, chunk_cache));
}

/* The entry for an address. */
static inline struct reap_chunk **reap_cached_chunk(struct reap_tables *tables, const void *pointer)
{
    return reap_chunk_cache(tables) + ((uintptr_t)pointer >> REAP_CHUNK_CACHE_SHIFT & tables->cache_last);
}

#endif
