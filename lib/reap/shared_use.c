/* SPDX-License-Identifier: Apache-2.0 */
/* shared_use.c: objects of shared reaps, without the reap's lock. */
#include "reap/shared_use.h"

#include "reap/reap_alloc.h"

/* The face of a handle whose memory was read before; NULL if the handle has no face. */
static ALWAYS_INLINE struct reap_face *face_known(void *handle)
{
    struct reap_face *face = handle;
    bool may_be = (uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE; /* so not null */
    return LIKELY(may_be && face->tag == reap_face_tag(face)) ? face : NULL;
}

/* A bare reap gets the chunk that stays before its first object. */
static NOINLINE void *alloc_slow(void *with, size_t size)
{
    struct reap *reap = with;
    if (reap_bare_needs_chunk(reap) && !reap_bare_begin_chunk(reap)) return NULL;
    return reap_alloc(reap, size);
}

struct reap_use reap_use_face(struct reap_face *face)
{
    struct reap_use use;
    use.shard = reap_shared_enter_slow(face, &use.reap);
    if (use.shard && reap_bare_needs_chunk(use.reap)) reap_bare_begin_chunk(use.reap);
    return use;
}

void *reap_use_malloc(struct reap_use *use, size_t size)
{
    void *object = reap_alloc_any(use->reap, size);
    return LIKELY(object || !reap_use_whole(use)) ? object : reap_alloc_any(use->reap, size);
}

void *reap_use_aligned(struct reap_use *use, size_t alignment, size_t size)
{
    void *object = reap_alloc_aligned(use->reap, alignment, size);
    return LIKELY(object || !reap_use_whole(use)) ? object : reap_alloc_aligned(use->reap, alignment, size);
}

bool reap_use_whole(struct reap_use *use)
{
    if (!use->shard) return false;
    struct reap *whole = reap_whole(use->reap);
    shard_leave(use->shard);
    *use = (struct reap_use){reap_shared_hold_again(whole), NULL};
    return true;
}

void *shared_malloc_any(void *handle, size_t size, const char *call)
{
    USED struct reap_use use = reap_use_face(reap_shared_face(handle, call));
    return reap_use_malloc(&use, size);
}

static NOINLINE void *malloc_slow(void *handle, size_t size)
{
    return shared_malloc_any(handle, size, "reapMalloc");
}

/* Takes a free block in an entered shard, or the slow path. */
static NOINLINE void *malloc_entered(void *handle, size_t size, struct reap_shard *shard)
{
    struct reap *reap = shard->reap;
    void *object = reap_alloc_or(reap, size, alloc_slow, reap);
    shard_leave(shard);
    return LIKELY(object != NULL) ? object : malloc_slow(handle, size);
}

static NOINLINE void *malloc_locked(void *handle, size_t size, const struct shard_table *table)
{
    struct reap_shard *shard = shard_enter_locked(table);
    return shard ? malloc_entered(handle, size, shard) : malloc_slow(handle, size);
}

/* Bumps in region mode. All other ways end in tail calls, so that this one saves no registers. */
void *shared_malloc(void *handle, size_t size)
{
    struct reap_face *face = face_known(handle);
    struct shard_table *table = LIKELY(face != NULL) ? reap_face_table(face) : NULL;
    if (UNLIKELY(!table)) return malloc_slow(handle, size);
    if (UNLIKELY(heap_path_is_locked())) return malloc_locked(handle, size, table);
    struct reap_shard *shard = shard_enter_by_section(table);
    if (UNLIKELY(!shard)) return malloc_slow(handle, size);
    struct reap *reap = shard->reap;
    char *object = reap->bump;
    size_t last = size - 1;
    if (UNLIKELY(last >= (size_t)(reap->end - object))) return malloc_entered(handle, size, shard);
    reap_mark_start(reap, object);
    __atomic_store_n(&reap->bump, object + (last | (REAP_UNIT - 1)) + 1, __ATOMIC_RELEASE);
    shard_leave(shard);
    return object;
}

struct reap_chunk *shared_chunk_of(const struct reap_shard *shard, const void *object)
{
    struct reap_chunk *chunk = chunk_of(object, NULL);
    if (!chunk || !reap_chunk_is_live(chunk) || !chunk->shared) return NULL;
    if (!reap_is_object(chunk, object) || reap_is_pending(object)) return NULL;
    struct reap *owner = chunk->owner;
    bool is_same = owner == shard->reap || reap_whole(owner) == reap_whole(shard->reap);
    return is_same ? chunk : NULL;
}

/* The units of an object of another shard, if one word of the bitmap tells them; other objects count as
 * many. */
static size_t units_of(const struct reap_chunk *chunk, const void *object)
{
    if (chunk->kind == REAP_WHOLE) return chunk->size / REAP_UNIT;
    size_t unit = reap_unit(chunk, object);
    uint64_t behind = __atomic_load_n(&chunk->starts[unit / 64], __ATOMIC_RELAXED) >> unit % 64 >> 1;
    return behind ? (size_t)__builtin_ctzll(behind) + 1 : REAP_EXACT_LISTS;
}

/* Frees an object in the shard, or sends it to another one. False: it may be no object. *due is the reap to
 * be drained. */
static NOINLINE bool free_any(struct reap_shard *shard, void *object, struct reap **due)
{
    struct reap_chunk *chunk = shared_chunk_of(shard, object);
    if (!chunk) return false;
    struct reap *reap = shard->reap;
    if (chunk->owner != reap)
        *due = shard_send(shard, chunk->owner, object, units_of(chunk, object));
    else if (!reap_free_last(reap, object) && (chunk->kind != REAP_REGULAR || !reap_free_known(reap, object)))
        reap_alloc_free(reap, chunk, object);
    return true;
}

/* Frees an object in a chunk that the shard's chunk cache has. The first test is that of reap_free_fast: such
 * an address is aligned, and in the chunk. */
static ALWAYS_INLINE bool free_cached(struct reap *reap, void *object)
{
    struct reap_chunk *chunk = *reap_cached_chunk(reap->tables, object);
    size_t offset = (size_t)((char *)object - (char *)chunk), unit = offset / 16 | offset << 60;
    if (UNLIKELY(unit >= chunk->fast_free_end || reap_is_pending(object))) return false;
    return reap_free_fast(reap, object);
}

/* True: the object was freed, and the shard left. */
static ALWAYS_INLINE bool free_in(struct reap_shard *shard, struct reap_face *face, void *object)
{
    struct reap *due = NULL;
    bool done = free_cached(shard->reap, object) || free_any(shard, object, &due);
    shard_leave(shard);
    if (UNLIKELY(due != NULL)) reap_shared_drain(face, due);
    return done;
}

static void free_held(struct reap *reap, void *object, const char *call)
{
    if (!reap_free_fast(reap, object))
        reap_alloc_free(reap, reap_chunk_of_object(reap, object, call), object);
}

void shared_free_any(void *handle, void *object, const char *call)
{
    struct reap_face *face = reap_shared_face(handle, call);
    if (!object) return;
    struct reap *held;
    struct reap_shard *shard = reap_shared_enter_slow(face, &held);
    if (shard && free_in(shard, face, object)) return;
    HELD struct reap *reap = shard ? reap_shared_hold(handle, call) : held;
    free_held(reap, object, call);
}

void shared_free(void *handle, void *object)
{
    struct reap_face *face = face_known(handle);
    struct reap_shard *shard = LIKELY(face && object) ? shard_enter(reap_face_table(face)) : NULL;
    if (UNLIKELY(!shard || !free_in(shard, face, object))) shared_free_any(handle, object, "reapFree");
}
