/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h: from the handle that a call was given to the reap: whether the value is a handle, and of which
 * kind.
 *
 *     what is known of it     ordinary reap             shared reap: its face
 *     the value alone         handle_may_be_plain       else
 *     its memory was read     handle_is_plain_known     handle_face_known
 *     nothing                 handle_is_plain           handle_face, which aborts if it is none
 *
 * An ordinary reap's own thread uses it. A shared reap is held from the check to the call's end (HELD).
 *
 * Threads: any.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include "reap/reap_shared.h"

/* Handles of ordinary reaps lie at REAP_HEADER modulo USER_MEMORY_ALIGN, those of shared reaps (faces) at
 * -REAP_FACE. So one bit tells that a handle is null or a face, at the cost of a test for null. */
static_assert((REAP_HEADER & (REAP_HEADER - 1)) == 0 &&
                  (REAP_HEADER & ((int)USER_MEMORY_ALIGN - REAP_FACE)) == 0,
              "the bit of ordinary handles is theirs alone");
static inline bool handle_may_be_plain(const struct reap *reap) { return (uintptr_t)reap & REAP_HEADER; }

/* Returns true for the handle of an ordinary reap, whose memory the caller has read before: so a read cannot
 * fault. */
static inline bool handle_is_plain_known(const struct reap *reap)
{
    return LIKELY((uintptr_t)reap % USER_MEMORY_ALIGN == REAP_HEADER && reap->tag == reap_tag(reap));
}

/* Returns true if an address lies in an arena of slots, or in a chunk. Elsewhere the memory may have gone
 * back to the OS, and a read would fault. The map of chunks knows most of them, and 0 is its word for none.
 */
static inline bool handle_is_readable(const void *pointer)
{
    return ((uintptr_t)pointer >> PAGEMAP_SHIFT && chunk_map_has(pointer)) || chunk_of(pointer, NULL);
}

/* Returns true if this value is the handle of an ordinary reap. */
static inline bool handle_is_plain(const struct reap *reap)
{
    bool may_be = (uintptr_t)reap % USER_MEMORY_ALIGN == REAP_HEADER; /* so it is not NULL */
    return LIKELY(may_be && handle_is_readable(reap) && reap->tag == reap_tag(reap));
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

/* Calls handle_check_place_in for those few places of handles that are aligned as reaps or faces are: one
 * test for both, which a few other places pass too. */
static inline void handle_check_place(void **handle, const char *call)
{
    const uintptr_t beyond = USER_MEMORY_ALIGN - REAP_FACE - REAP_HEADER; /* a face is so far behind a reap */
    const uintptr_t bits = (USER_MEMORY_ALIGN - 1) & ~beyond;
    REAP_NOT_NULL(handle, call);
    if (UNLIKELY((((uintptr_t)handle - REAP_HEADER) & bits) == 0)) handle_check_place_in(handle, call);
}

/* --- the reap of a call ---------------------------------------------------------------------- */

static inline void reap_let_go(struct reap **reap)
{
    if (*reap && UNLIKELY(reap_is_part(*reap))) reap_shared_let_go(*reap);
}

/* Stands before the variable of a held reap. Where the variable's scope ends, the thread lets go of the
 * reap. */
#define HELD __attribute__((cleanup(reap_let_go), unused))

/* Checks the handle that `call` was given; holds and returns its reap. */
static inline struct reap *reap_hold(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    struct reap *reap = *handle;
    return LIKELY(handle_is_plain(reap)) ? reap : reap_shared_hold(reap, call, true);
}

/* As reap_hold, for calls that need none of the reap's memory. */
static inline struct reap *reap_hold_lightly(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    struct reap *reap = *handle;
    return LIKELY(handle_is_plain(reap)) ? reap : reap_shared_hold(reap, call, false);
}

/* Checks two handles and holds both reaps, that of the lower handle first. */
static inline void reap_hold_both(void **one, struct reap **first, void **two, struct reap **second,
                                  const char *call)
{
    REAP_NOT_NULL(one, call);
    REAP_NOT_NULL(two, call);
    bool in_order = (uintptr_t)*one <= (uintptr_t)*two;
    if (in_order) *first = reap_hold(one, call);
    *second = reap_hold(two, call);
    if (!in_order) *first = reap_hold(one, call);
}

/* Checks a handle, and holds nothing. */
static inline void reap_check(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    if (UNLIKELY(!handle_is_plain(*handle))) (void)handle_face(*handle, call);
}

/* Checks an object that `call` was given, with its chunk; holds and returns the reap that has it, which may
 * be a hidden child. */
static inline struct reap *reap_hold_owner(const struct reap_chunk *chunk, const void *object,
                                           const char *call)
{
    if (UNLIKELY(!chunk || !reap_chunk_is_live(chunk))) reap_misuse_object(call, NULL, object);
    struct reap *reap = chunk->owner;
    if (UNLIKELY(chunk->shared)) {
        reap_shared_hold_again(reap);
        if (chunk_of(object, NULL) != chunk) chunk = NULL; /* another thread has freed it meanwhile */
    }
    if (UNLIKELY(!chunk || !reap_is_object(chunk, object))) reap_misuse_object(call, NULL, object);
    return reap;
}

#endif
