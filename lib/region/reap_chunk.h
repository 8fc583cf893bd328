/* SPDX-License-Identifier: Apache-2.0 */
/* reap_chunk.h: chunks of a reap, from the backend and back.
 *
 * Threads: the reap's own, but for reap_chunk_whole.
 */
#ifndef REAP_CHUNK_H
#define REAP_CHUNK_H

#include "base/sanitizer.h"
#include "hoard/guarded.h"
#include "region/reap_types.h"

static_assert(sizeof(struct reap_chunk) <= GUARDED_HEADER, "an object's chunk may be apart from it");

/* Is the chunk no more than the header of an object that lies elsewhere? */
static inline bool reap_chunk_is_apart(const struct reap_chunk *chunk)
{
    return chunk->kind == REAP_WHOLE && chunk->apart;
}

/* A chunk with room for units, linked but not current. NULL: no memory. */
struct reap_chunk *reap_chunk_new(struct reap *reap, size_t units);

/* Makes a regular chunk that is on no list, and not the first, an empty one of the reap's. */
void reap_chunk_start(struct reap *reap, struct reap_chunk *chunk, bool zeroed);

/* A chunk for one object of so many units at an alignment. Not linked, nothing is counted: any
 * thread may call this. *zeroed tells whether the object is known to be zero (may be NULL). */
struct reap_chunk *reap_chunk_whole(struct reap *reap, size_t alignment, size_t units, bool *zeroed);

/* Puts such a chunk on the reap's list. */
void reap_chunk_hold(struct reap *reap, struct reap_chunk *chunk);

/* Makes a chunk with a large object another reap's. */
void reap_chunk_move(struct reap *from, struct reap *to, struct reap_chunk *chunk);

/* Has the reap's table forget a chunk, so that its frees take the slow path. */
void reap_chunk_forget(struct reap *reap, const struct reap_chunk *chunk);

/* Gives back a chunk that is on no list, and has no tag that says it is live. */
void reap_chunk_give_back(struct reap_chunk *chunk);

/* Takes a chunk in which nothing lives off the list and gives it back. */
void reap_chunk_release(struct reap *reap, struct reap_chunk *chunk);

/* Resizes a large object in place: its chunk has room for units then, or false. */
bool reap_chunk_resize(struct reap *reap, struct reap_chunk *chunk, size_t units);

/* Takes in the chunks that other threads made. */
void reap_chunk_adopt_all(struct reap *reap);
static inline void reap_chunk_adopt(struct reap *reap)
{
    if (UNLIKELY(atomic_load_explicit(&reap->remote_chunks, memory_order_relaxed)))
        reap_chunk_adopt_all(reap);
}

/* Tables that know nothing, for reaps that have freed nothing. */
extern HIDDEN struct reap_tables reap_no_tables;

/* Gives a reap tables of its own. */
void reap_tables_begin(struct reap *reap);

/* The bytes of its wider ones, which are not in the reap; they are part of what it holds. */
static inline size_t reap_wide_size(const struct reap *reap)
{
    return UNLIKELY(reap->flags & REAP_BIG_TABLES) ? reap_tables_size(reap->big->cache_last + 1) : 0;
}

/* Gives them back. */
void reap_tables_give_back(struct reap *reap);
static inline void reap_tables_end(struct reap *reap)
{
    if (UNLIKELY(reap->flags & REAP_BIG_TABLES)) reap_tables_give_back(reap);
}

/* Makes the second bitmap of a chunk. */
void reap_chunk_make_frees(struct reap *reap, struct reap_chunk *chunk);

/* Carves a record of size bytes from the hole's end. NULL: the hole is too small. */
void *reap_chunk_record(struct reap *reap, size_t size);

/* Has a reap's frees take the slow path: its table forgets what it knows. */
void reap_chunk_forget_all(struct reap *reap);

/* The bytes of all live objects. */
size_t reap_chunk_live_bytes(const struct reap *reap);

/* The chunk of a pointer into this reap's memory; NULL for any other value. */
struct reap_chunk *reap_chunk_find(struct reap *reap, const void *pointer);

/* The chunks that hold objects, newest first and the first one last; NULL after it. */
static inline struct reap_chunk *reap_chunk_after(const struct reap *reap, const struct reap_chunk *chunk)
{
    if (chunk == reap_first_chunk(reap)) return NULL;
    return chunk->next ? chunk->next : reap_first_chunk(reap);
}

static inline struct reap_chunk *reap_chunk_begin(const struct reap *reap)
{
    return reap->chunks ? reap->chunks : reap_first_chunk(reap);
}

#endif
