/* SPDX-License-Identifier: Apache-2.0 */
/* misuse.h: is it a reap, is it one of its objects?
 *
 * The checks are made of what allocation keeps anyway: the chunk that holds an address (from the
 * backend's table, so that no value faults), the chunk's tag, and the two bitmaps. What they find
 * is one line, and then abort:
 *
 *     an argument is NULL          and must not be
 *     not a live reap              NULL, destroyed, or never a reap
 *     reap is being destroyed      (or cleared) by the call that this one comes from
 *     not a reap's object          in no reap's memory
 *     an object of another reap
 *     not the start of an object   an interior pointer
 *     freed twice
 *     memory around it was written to
 *     not a live object            freed before (in other calls than free), or its reap was cleared
 *                                  or destroyed
 *
 * A freed object is known as such until its memory is used again. With zones around objects (guarded.h) what
 * is known of the object follows.
 *
 * Threads: any.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include "arena/arena.h"
#include "hoard/user_memory.h"
#include "region/reap_chunk.h"

/* Says what is wrong with a handle, or with an object of this reap (NULL: of any); aborts. */
void reap_misuse_handle(const char *call, void *handle) __attribute__((noreturn, cold));
void reap_misuse_object(const char *call, const struct reap *reap, const void *object)
    __attribute__((noreturn, cold));

void reap_misuse_null(const char *call) __attribute__((noreturn, cold));

/* An argument that must not be NULL is looked at: reap.h says nonnull of it, which compilers believe. */
#define REAP_NOT_NULL(argument, call)                                                                        \
    do {                                                                                                     \
        __typeof__(argument) argument_ = (argument);                                                         \
        __asm__("" : "+r"(argument_));                                                                       \
        if (UNLIKELY(!argument_)) reap_misuse_null(call);                                                    \
    } while (0)

/* Is a chunk a large object's, with nothing written around it? */
bool reap_is_whole(const struct reap_chunk *chunk);

/* Is a unit the start of a live object in this chunk? */
static inline bool reap_is_object(const struct reap_chunk *chunk, const void *object)
{
    size_t unit = reap_unit(chunk, object);
    if ((uintptr_t)object % REAP_UNIT) return false;
    if (UNLIKELY(chunk->kind != REAP_REGULAR)) return unit == chunk->first && reap_is_whole(chunk);
    if (!bitmap_get(chunk->starts, unit)) return false;
    return !reap_is_free(chunk, unit);
}

/* Is there an arena of slots, or a chunk, at an address? Else its memory may have gone back to the OS, and to
 * read it is a fault. */
bool reap_is_in_chunk(const void *pointer);
static inline bool reap_is_readable(const void *pointer)
{
    struct arena *arena = pagemap_find(pointer);
    return LIKELY(arena && arena->mapping == 0) || reap_is_in_chunk(pointer);
}

/* Is it a handle of an ordinary reap, whose memory was read before? */
static inline bool reap_is_plain_known(const struct reap *reap)
{
    return LIKELY(reap && (uintptr_t)reap % USER_MEMORY_ALIGN == REAP_HEADER && reap->tag == reap_tag(reap));
}

/* The same of any value. Of a shared reap see reap_shared.h. */
static inline bool reap_is_plain(const struct reap *reap)
{
    bool may_be = reap && (uintptr_t)reap % USER_MEMORY_ALIGN == REAP_HEADER;
    return LIKELY(may_be && reap_is_readable(reap) && reap->tag == reap_tag(reap));
}

/* The chunk of an object that `call` was given for this reap. */
static inline struct reap_chunk *reap_chunk_of_object(struct reap *reap, const void *object, const char *call)
{
    struct reap_chunk *chunk = reap_chunk_find(reap, object);
    if (UNLIKELY(!chunk || !reap_is_object(chunk, object))) reap_misuse_object(call, reap, object);
    return chunk;
}

#endif
