/* SPDX-License-Identifier: Apache-2.0 */
/* shared_use.h: objects of shared reaps, without the reap's lock.
 *
 * A call that makes, resizes or frees an object uses the reap of this thread's shard (reap_shard.h). Where an
 * object cannot be what the call needs, the call leaves the shard and holds the whole reap. There the checks
 * are those of any reap, and so are their words.
 *
 * Threads: any, while the reap lives.
 */
#ifndef SHARED_USE_H
#define SHARED_USE_H

#include "reap/reap_shared.h"

/* What a call uses: an ordinary reap, the reap of an entered shard, or a held shared reap. */
struct reap_use {
    struct reap *reap;
    struct reap_shard *shard; /* or NULL */
};

/* Stands before the variable of a reap_use. Where the variable's scope ends, its use ends. */
#define USED __attribute__((cleanup(reap_use_end)))

static inline void reap_use_end(struct reap_use *use)
{
    if (use->shard)
        shard_leave(use->shard);
    else
        reap_let_go(&use->reap);
}

/* Begins to use the reap of a face, for an allocation or a free. */
struct reap_use reap_use_face(struct reap_face *face);

/* Checks the handle that `call` was given, and begins to use its reap. */
static inline struct reap_use reap_use(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    struct reap *reap = *handle;
    if (LIKELY(reap_is_plain(reap))) return (struct reap_use){reap, NULL};
    return reap_use_face(reap_shared_face(reap, call));
}

/* An object of size bytes. NULL: no memory, in the whole reap. */
void *reap_use_malloc(struct reap_use *use, size_t size);

/* The same at an alignment, a power of two. */
void *reap_use_aligned(struct reap_use *use, size_t alignment, size_t size);

/* After an allocation that found no memory: if it was in a shard, holds the whole reap instead, which has the
 * free memory of all shards, and returns true. */
bool reap_use_whole(struct reap_use *use);

/* reapMalloc and reapFree of a shared reap, whose handle's memory was read before. They abort when the
 * handle is none, or the object. */
void *shared_malloc(void *handle, size_t size);
void shared_free(void *handle, void *object);

/* The same for other calls, and any handles. */
void *shared_malloc_any(void *handle, size_t size, const char *call);
void shared_free_any(void *handle, void *object, const char *call);

/* The chunk of a live object of the shared reap that an entered shard belongs to; NULL: it may be none. */
struct reap_chunk *shared_chunk_of(const struct reap_shard *shard, const void *object);

#endif
