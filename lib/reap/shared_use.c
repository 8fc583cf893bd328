/* SPDX-License-Identifier: Apache-2.0 */
/* shared_use.c: objects of shared reaps. */
#include "reap/shared_use.h"

#include "reap/reap_alloc.h"

/* --- making ---------------------------------------------------------------------------------- */

struct reap_use reap_use_face(struct reap_face *face)
{
    struct reap_part *part = reap_part_for_malloc(face);
    if (!reap_part_enter(part)) return (struct reap_use){face->reap, NULL};
    if (LIKELY(!part->barred)) return (struct reap_use){part->reap, part};
    reap_part_leave(part);
    part = &face->part;
    return (struct reap_use){face->reap, reap_part_enter(part) ? part : NULL};
}

bool reap_use_whole(struct reap_use *use)
{
    if (!use->part || !(use->reap->flags & REAP_LIMITED)) return false;
    const struct reap *reap = use->reap;
    reap_part_leave(use->part);
    *use = (struct reap_use){reap_shared_hold_again(reap), NULL};
    return true;
}

static void *alloc_in(struct reap *reap, size_t alignment, size_t size)
{
    if (LIKELY(alignment <= REAP_UNIT)) return reap_alloc_any(reap, size);
    return reap_alloc_aligned(reap, alignment, size);
}

void *reap_use_malloc(struct reap_use *use, size_t alignment, size_t size)
{
    void *object = alloc_in(use->reap, alignment, size);
    return LIKELY(object || !reap_use_whole(use)) ? object : alloc_in(use->reap, alignment, size);
}

void *shared_malloc_any(void *handle, size_t size, const char *call)
{
    USED struct reap_use use = reap_use_face(handle_face(handle, call));
    return reap_use_malloc(&use, REAP_UNIT, size);
}

static NOINLINE void *shared_malloc_slow(void *handle, size_t size)
{
    return shared_malloc_any(handle, size, "reapMalloc");
}

/* Takes a gap in an entered part, or the slow path. */
static NOINLINE void *malloc_entered(void *handle, size_t size, struct reap_part *part)
{
    void *object = part->barred ? NULL : reap_alloc_any(part->reap, size);
    reap_part_leave(part);
    return LIKELY(object != NULL) ? object : shared_malloc_slow(handle, size);
}

/* Bumps in region mode. All other ways end in tail calls, so that this one saves no registers. */
void *shared_malloc(void *handle, size_t size)
{
    struct reap_face *face = handle_face_known(handle);
    if (UNLIKELY(!face || heap_path_is_locked())) return shared_malloc_slow(handle, size);
    struct reap_part *part = reap_part_of(face, rseq_id());
    if (UNLIKELY(!part || !reap_part_try(part))) return shared_malloc_slow(handle, size);
    struct reap *reap = part->reap;
    if (UNLIKELY(part->barred || size - 1 >= (size_t)(reap->end - reap->bump)))
        return malloc_entered(handle, size, part);
    void *object = reap_bump_over(reap, size);
    reap_part_leave(part);
    return object;
}

/* --- freeing --------------------------------------------------------------------------------- */

/* A shared object's chunk; NULL: it may be none. Reads only what stays as long as the object. */
static struct reap_chunk *chunk_of_object(const struct reap_face *face, const void *object)
{
    struct reap_chunk *chunk = chunk_of(object, NULL);
    if (!chunk || !reap_chunk_is_live(chunk) || !chunk->shared) return NULL;
    if (!reap_is_object(chunk, object) || reap_face(chunk->owner) != face) return NULL;
    return !face->alone && reap_is_pending(object) ? NULL : chunk; /* a tool would see that it is read */
}

struct reap_use reap_use_object(struct reap_face *face, const void *object, const char *call)
{
    struct reap_chunk *chunk = chunk_of_object(face, object);
    if (UNLIKELY(!chunk)) {
        HELD struct reap *reap = reap_shared_hold_again(face->reap); /* so nothing is pending */
        chunk = reap_chunk_of_object(reap_part_with(reap, object), object, call);
    }
    struct reap_part *part = reap_own_part(chunk->owner);
    return (struct reap_use){part->reap, reap_part_enter(part) ? part : NULL};
}

/* Frees an object in a listed chunk of the part, whose words can be read. */
static ALWAYS_INLINE bool free_listed(struct reap *reap, void *object)
{
    /* The object may be of another part, whose thread sets the entry just now. */
    uint32_t entry = __atomic_load_n(chunk_map_entry(object), __ATOMIC_RELAXED);
    if (entry != (uint32_t)(uintptr_t)reap || !chunk_map_is_near(object, reap)) return false;
    if (UNLIKELY((uintptr_t)object % REAP_UNIT)) return false; /* its second word may lie behind the chunk */
    return !UNLIKELY(reap_is_pending(object)) && reap_free_fast(reap, object);
}

/* Frees an object of the part whose entry is its chunk. False: it may be another part's, or none. */
static bool free_by_chunk(struct reap *reap, void *object)
{
    uint32_t entry = __atomic_load_n(chunk_map_entry(object), __ATOMIC_RELAXED);
    if (!(entry & 1) || !chunk_map_has(object) || (uintptr_t)object % REAP_UNIT) return false;
    const struct reap_chunk *chunk = reap_chunk_of_entry(object, entry);
    return chunk->owner == reap && !reap_is_pending(object) && reap_free_by_chunk(reap, object);
}

static void free_in_part(struct reap *reap, struct reap_chunk *chunk, void *object)
{
    if (!reap_free_fast(reap, object) && !reap_free_by_chunk(reap, object))
        reap_alloc_free(reap, chunk, object);
}

/* The units of another part's object; 0: one word of the bitmap does not tell. */
static size_t units_of(const struct reap_chunk *chunk, const void *object)
{
    if (chunk->kind == REAP_WHOLE) return chunk->size / REAP_UNIT;
    size_t unit = reap_unit(object);
    uint64_t behind = __atomic_load_n(&chunk->starts[unit / 64], __ATOMIC_RELAXED) >> unit % 64 >> 1;
    return behind ? (size_t)__builtin_ctzll(behind) + 1 : 0;
}

/* Puts an object onto its part's remote list. Returns the part if too much waits there, or NULL. The count
 * is about right: two threads may count at once, and an object of unknown size counts as half of one. */
static struct reap_part *send_to_part(struct reap_part *own, const struct reap_chunk *chunk, void *object)
{
    uintptr_t *words = object, link = reap_link(words, false);
    struct reap_part *part = reap_own_part(chunk->owner);
    size_t units = units_of(chunk, object);
    words[1] = reap_pending(object);
    if (units > 1) link = reap_point_out(&own->recent[own->turn++ % REAP_AHEAD], words);
    if (units == 0) units = 32;
    if (reap_push_pending(chunk->owner, words, link))
        units += atomic_load_explicit(&part->pending, memory_order_relaxed);
    if (units > REAP_PART_PENDING / REAP_UNIT) return part;
    atomic_store_explicit(&part->pending, (unsigned)units, memory_order_relaxed);
    return NULL;
}

/* Frees an object in the entered part, or sends it to another one. False: it may be no object, or it is to be
 * freed in the other one at once, because it counts on a limit. */
static NOINLINE bool free_any(struct reap_part *own, void *object, struct reap_part **due)
{
    struct reap *reap = own->reap;
    bool is_near =
        reap->current && object >= (void *)reap->current && object <= (void *)(reap->bump - REAP_UNIT);
    if (is_near && !reap_is_pending(object) && reap_free_in_region(reap, object)) return true;
    if (free_by_chunk(reap, object)) return true;
    struct reap_chunk *chunk = chunk_of_object(own->face, object);
    if (!chunk) return false;
    if (chunk->owner == reap)
        free_in_part(reap, chunk, object);
    else if (reap->flags & REAP_LIMITED)
        return false;
    else
        *due = send_to_part(own, chunk, object);
    return true;
}

/* Frees all objects that wait on a part's remote list. */
static NOINLINE void free_pending(struct reap_part *part)
{
    USED struct reap_use use = {part->reap, reap_part_enter(part) ? part : NULL};
    reap_alloc_take_remote(use.reap);
}

/* Frees an object in the part that has it, or aborts. True: a thread without a part should get one, for
 * such threads have freed VISITS objects here, and each free moved the part's cache lines. */
enum { VISITS = 16 };
static NOINLINE bool free_there(struct reap_face *face, void *object, const char *call)
{
    USED struct reap_use use = reap_use_object(face, object, call);
    free_in_part(use.reap, reap_chunk_of_object(use.reap, object, call), object);
    return use.part && ++use.part->visits % VISITS == 0 && !(use.reap->flags & REAP_LIMITED);
}

/* Frees it by way of this thread's part, which it enters, if that can be. */
static ALWAYS_INLINE void free_shared(struct reap_face *face, void *object, const char *call)
{
    struct reap_part *own = reap_part_of(face, heap_path_id()), *due = NULL;
    bool done = false;
    if (LIKELY(own && reap_part_try(own))) {
        done = free_listed(own->reap, object) || free_any(own, object, &due);
        reap_part_leave(own);
    }
    if (UNLIKELY(due != NULL)) free_pending(due);
    if (UNLIKELY(!done) && free_there(face, object, call) && !own) reap_part_for_malloc(face);
}

void shared_free_any(void *handle, void *object, const char *call)
{
    struct reap_face *face = handle_face(handle, call);
    if (object) free_shared(face, object, call);
}

void shared_free(void *handle, void *object)
{
    struct reap_face *face = handle_face_known(handle);
    if (LIKELY(face && object))
        free_shared(face, object, "reapFree");
    else
        shared_free_any(handle, object, "reapFree");
}

/* --- resizing -------------------------------------------------------------------------------- */

/* Returns true if an object has to move to the reap itself: here it would be older than an open mark. */
static bool has_to_move(struct reap *part, const void *object, size_t size, const char *call)
{
    const struct reap *known = reap_known(part);
    if (LIKELY(!(known->flags & REAP_MARKED)) || part == known) return false;
    const struct reap_chunk *chunk = reap_chunk_of_object(part, object, call);
    size_t unit = reap_unit(object);
    return chunk->kind == REAP_WHOLE || size > (reap_block_end(chunk, unit) - unit) * REAP_UNIT;
}

static void *resize_in_part(struct reap *part, void *object, size_t size, const char *call)
{
    return reap_alloc_resize(part, reap_chunk_of_object(part, object, call), object, size);
}

void *shared_realloc(struct reap_face *face, void *object, size_t size, const char *call)
{
    USED struct reap_use use = reap_use_object(face, object, call);
    struct reap *part = use.reap;
    if (!has_to_move(part, object, size, call)) {
        void *resized = resize_in_part(part, object, size, call);
        if (resized || !reap_use_whole(&use)) return resized;
    } else if (use.part) {
        reap_part_leave(use.part);
        use = (struct reap_use){reap_shared_hold_again(part), NULL};
    }
    if (!has_to_move(part, object, size, call)) return resize_in_part(part, object, size, call);
    struct reap_chunk *chunk = reap_chunk_of_object(part, object, call);
    return reap_alloc_resize_in(part, chunk, object, face->reap, size);
}
