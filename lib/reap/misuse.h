/* SPDX-License-Identifier: Apache-2.0 */
/* misuse.h: checks whether a handle is a reap's, and a pointer one of its objects.
 *
 * The checks use what allocation keeps anyway: the chunk that holds an address (from the backend's table, so
 * that no value faults), its tag, and the two bitmaps. A failed check prints one of these lines and aborts:
 *
 *     an argument is NULL          and must not be
 *     not a live reap              NULL, destroyed, or never a reap
 *     reap is being destroyed      (or cleared) by the call that this one comes from
 *     not a reap's object          a pointer to memory of no reap
 *     an object of another reap
 *     not the start of an object   an interior pointer
 *     freed twice
 *     memory around it was written to
 *     not a live object            freed before (calls other than free), or its reap was cleared
 *                                  or destroyed
 *
 * What a value is known to be decides how it is checked:
 *
 *     what is known of it     ordinary reap             shared reap: its face
 *     the value alone         handle_may_be_plain       else
 *     its memory was read     handle_is_plain_known     handle_face_known
 *     nothing                 handle_is_plain           handle_face, which aborts if it is none
 *
 * The checks recognize a freed object until its memory is used again. With harden (apart.h) the line also
 * tells the object's size, the first changed byte and its reap.
 *
 * Threads: any.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include "hoard/user_memory.h"
#include "reap/reap_parts.h"

/* Each prints what is wrong, with a handle or with an object of this reap (NULL: of any reap), and aborts. */
void reap_misuse_handle(const char *call, void *handle) __attribute__((noreturn, cold));
void reap_misuse_object(const char *call, const struct reap *reap, const void *object)
    __attribute__((noreturn, cold));

void reap_misuse_null(const char *call) __attribute__((noreturn, cold));

/* Checks that an argument is not NULL. reap.h declares it nonnull, and compilers would drop a plain check. */
#define REAP_NOT_NULL(argument, call)                                                                        \
    do {                                                                                                     \
        if (UNLIKELY(!UNKNOWN(argument))) reap_misuse_null(call);                                            \
    } while (0)

/* --- handles ---------------------------------------------------------------------------------- */

/* Handles of ordinary reaps lie at REAP_HEADER modulo USER_MEMORY_ALIGN, those of shared reaps (faces) at
 * -REAP_FACE. So one bit tells that a handle is null or a face, at the cost of a test for null. */
static_assert((REAP_HEADER & (REAP_HEADER - 1)) == 0 &&
                  (REAP_HEADER & ((int)USER_MEMORY_ALIGN - REAP_FACE)) == 0,
              "the bit of ordinary handles is theirs alone");
static inline bool handle_may_be_plain(const struct reap *reap) { return (uintptr_t)reap & REAP_HEADER; }

/* Returns true for the handle of an ordinary reap, of which a read cannot fault: the caller has read it. */
static inline bool handle_is_plain_known(const struct reap *reap)
{
    return LIKELY((uintptr_t)reap % USER_MEMORY_ALIGN == REAP_HEADER && reap->tag == reap_tag(reap));
}

/* Returns true if an address lies in an arena of slots, or in a chunk; elsewhere a read could fault. The
 * map of chunks knows most of them, and 0 is its word for none. */
static inline bool handle_is_readable(const void *pointer)
{
    return ((uintptr_t)pointer >> PAGEMAP_SHIFT && chunk_map_has(pointer)) || chunk_of(pointer, NULL);
}

/* Returns true if a value, then not NULL, lies where handles of ordinary reaps do. */
static inline bool handle_has_place(const struct reap *reap)
{
    return LIKELY((uintptr_t)reap % USER_MEMORY_ALIGN == REAP_HEADER);
}

/* Returns true if this value is the handle of an ordinary reap. */
static inline bool handle_is_plain(const struct reap *reap)
{
    return LIKELY(handle_has_place(reap) && handle_is_readable(reap) && reap->tag == reap_tag(reap));
}

/* The same without a call, and false for the few that have no part of the map. */
static ALWAYS_INLINE bool handle_is_mapped(const struct reap *reap)
{
    bool may_be = handle_has_place(reap) && (uintptr_t)reap >> PAGEMAP_SHIFT;
    return LIKELY(may_be && chunk_map_has(reap) && reap->tag == reap_tag(reap));
}

/* The face of a handle whose memory was read before; NULL if the handle has no face. */
static ALWAYS_INLINE struct reap_face *handle_face_known(void *handle)
{
    struct reap_face *face = handle;
    bool may_be = (uintptr_t)face % USER_MEMORY_ALIGN == USER_MEMORY_ALIGN - REAP_FACE; /* so not null */
    return LIKELY(may_be && face->tag == reap_face_tag(face)) ? face : NULL;
}

/* The face of a shared reap's handle. Aborts when the handle is none. */
struct reap_face *handle_face(void *handle, const char *call);

/* Aborts when a call would set a handle that lies in a reap itself, or in a face: the `&` was forgotten. */
void handle_check_place_in(void **handle, const char *call) __attribute__((cold));

/* Returns true for the few places of handles that are aligned as reaps or faces are, and a few others. */
static ALWAYS_INLINE bool handle_place_is_odd(void **handle)
{
    const uintptr_t beyond = USER_MEMORY_ALIGN - REAP_FACE - REAP_HEADER; /* a face is so far behind a reap */
    const uintptr_t bits = (USER_MEMORY_ALIGN - 1) & ~beyond;
    return UNLIKELY((((uintptr_t)handle - REAP_HEADER) & bits) == 0);
}

static inline void handle_check_place(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    if (handle_place_is_odd(handle)) handle_check_place_in(handle, call);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* Returns true if it is the chunk of a large object, without writes around that object. */
bool reap_is_whole(const struct reap_chunk *chunk);

/* Notes the reap of an object that lies apart, for lines about it. The second one does so for all objects
 * since a mark of that depth (0: for all), and ends the program when bytes around one were written to. */
void reap_note_object(struct reap_chunk *chunk);
void reap_check_objects(struct reap *reap, unsigned depth, const char *call);

/* Says that the program, or the library, may touch so many bytes of an object. Any thread. */
static inline void reap_use_all(const struct reap_chunk *chunk, size_t bytes)
{
    if (UNLIKELY(reap_chunk_is_apart(chunk))) apart_widen((void *)(uintptr_t)chunk, bytes);
}

/* reap_is_pending, of an object whose words may be undefined to a tool. Any thread. */
static inline bool reap_is_freed(const void *object)
{
    if (UNLIKELY(apart_on)) apart_use(object);
    return reap_is_pending(object);
}

/* Returns true if the address is the start of a live object in this chunk. Any thread may ask. */
static inline bool reap_is_object(const struct reap_chunk *chunk, const void *object)
{
    size_t unit = reap_unit(object);
    if ((uintptr_t)object % REAP_UNIT) return false;
    if (UNLIKELY(chunk->kind != REAP_REGULAR)) return unit == chunk->first && reap_is_whole(chunk);
    return unit < chunk->end_unit && bitmap_get(chunk->starts, unit) && reap_is_live_at(chunk, unit);
}

/* The chunk of an object that `call` was given for this reap. Aborts when it is not the reap's object. */
static inline struct reap_chunk *reap_chunk_of_object(struct reap *reap, const void *object, const char *call)
{
    struct reap_chunk *chunk = reap->current;
    if (!chunk || (uintptr_t)object - (uintptr_t)chunk >= chunk->size) chunk = reap_chunk_find(reap, object);
    if (UNLIKELY(!chunk || !reap_is_object(chunk, object))) reap_misuse_object(call, reap, object);
    return chunk;
}

#endif
