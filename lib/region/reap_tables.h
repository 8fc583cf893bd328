/* SPDX-License-Identifier: Apache-2.0 */
/* reap_tables.h: the tables of heap mode.
 *
 * They are the free lists, by size (freelist.h), and the chunk cache, which leads from an object to its
 * chunk. The backend knows that chunk too (chunk_of); the cache keeps its answers, so that most frees do not
 * ask:
 *
 *     address   | ... | 16 KiB | 16 KiB | 16 KiB | ...        chunk_cache[address / 16 KiB % entries]
 *                          \       \
 *     cache       | chunk | chunk | no_chunk | chunk | ...
 *
 * The reap itself has 64 entries. When two chunks of a bigger reap meet in an entry, its tables grow, into
 * memory of their own. An empty entry points to a chunk of no size. Fast paths read these tables through
 * reap->tables. All reaps in which nothing was freed share empty tables: so creating a reap need not clear
 * its own, and no fast path tests whether they are cleared.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_TABLES_H
#define REAP_TABLES_H

#include <stddef.h>
#include <stdint.h>

struct reap_chunk;

enum {
    REAP_CHUNK_CACHE = 64,                 /* entries of the chunk cache in the reap */
    REAP_CHUNK_CACHE_MAX = 64 * 1024,      /* entries of the greatest chunk cache */
    REAP_CHUNK_CACHE_SHIFT = 14,           /* an entry is for 16 KiB of addresses */
    REAP_EXACT_LISTS = 32,                 /* free lists of one size each: 1 to 32 units */
    REAP_FREELISTS = REAP_EXACT_LISTS + 22 /* and two for each doubling, up to a whole chunk */
};

/* A free block, which has its links in its own memory. */
struct reap_block {
    struct reap_block *next;
    struct reap_block *prev;
    size_t units; /* only in blocks of more than REAP_EXACT_LISTS units */
};

/* The tables of heap mode. */
struct reap_tables {
    struct reap_block *freelists[REAP_FREELISTS]; /* the first free block of each size, or NULL */
    size_t cache_last; /* the cache's last index: the number of entries, a power of two, less one */
    struct reap_chunk
        *chunk_cache[REAP_CHUNK_CACHE]; /* by address; never NULL. There may be more: reap_cached_chunk() */
};

/* The bytes of tables with this number of entries. */
static inline size_t reap_tables_size(size_t entries)
{
    return offsetof(struct reap_tables, chunk_cache) + entries * sizeof(struct reap_chunk *);
}

/* The cache's entries; there may be more of them than the array has. */
static inline struct reap_chunk **reap_chunk_cache(struct reap_tables *tables)
{
    return (struct reap_chunk **)((char *)tables + offsetof(struct reap_tables, chunk_cache));
}

/* The cache's entry for an address. */
static inline struct reap_chunk **reap_cached_chunk(struct reap_tables *tables, const void *pointer)
{
    return reap_chunk_cache(tables) + ((uintptr_t)pointer >> REAP_CHUNK_CACHE_SHIFT & tables->cache_last);
}

#endif
