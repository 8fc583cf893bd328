/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.h: reaps that any thread may use at any time (REAP_SHARED).
 *
 * A shared reap consists of parts (shards): ordinary reaps with a lock word each. Each heap id whose threads
 * have made objects, or freed some of other parts (but not below a limit), has a part; if there are more ids
 * than CPUs, some share one. The first part is the reap itself; the others are hidden children, which no call
 * shows to the program. The handle points to the reap's face (a proxy), which looks to fast paths like a reap
 * without free memory. The library knows it by its address (misuse.h), and the check of handles by its tag.
 *
 *     ordinary      handle ──> | struct reap |
 *     shared        handle ──> | face: lock; part | ──> | struct reap |
 *                                 └── table, by id ──> | part | ──> | struct reap |, a hidden child
 *
 *     first chunk   | chunk header | struct reap | objects ->     <- records | face |
 *
 *     reapMalloc and all that make an object   enters the part of its thread's id
 *     reapFree, reapFreeAny, free              the same; an object of another part goes onto that part's list
 *     reapRealloc, builders                    enters the part that has the object
 *     reapUsableSize, reapOf                   only reads
 *     reapParent, reapName, reapHeldBytes,     takes the lock of the face
 *     reapCancelOnDestroy, reapCreate (parent)
 *     all others                               takes that lock, and then all parts
 *
 * An object stays in its part. If an id without a part frees an object, it enters the part that has the
 * object; with a sixteenth such free it gets a part. The thread that makes more than REAP_PART_PENDING bytes
 * pending on a part's list, or any below a limit, enters that part and frees them: its id may have no thread.
 *
 * Vocabulary
 *     enter     to become the holder of a part, by one atomic instruction; a store ends this
 *     hold      to have the lock of a shared reap, from the check of the handle to the call's end (HELD)
 *     take      to become the holder of all parts of a held reap, and to free what is pending
 *     outside   a thread that holds no reap
 *     alone     a reap without parts but itself, always taken: its chunks come from the program, or objects
 *               are watched
 *
 * A call holds its reap also while a function of the user runs. The lock is recursive, so such a function may
 * use the reap; but it must not wait for a thread that uses the reap.
 *
 * Invariants
 *     - a face's first line is written before any thread has the handle, and when its table comes
 *     - the face is the first record of the first chunk, and the only one that outlives a clear
 *     - a part, once made, stays until the reap ends
 *     - a thread that has entered a part waits for no thread that holds a reap or has entered a part; and it
 *       calls no function of the program
 *     - only threads that have entered a part push onto remote lists. So nothing is pending in a taken reap
 *     - while a mark is open, objects are made in the reap itself alone. The hidden children are barred
 *     - a face's tag is right exactly while the face is on the list of all faces. A thread that does not know
 *       whether a reap lives only reads it (reap_face_of_others). A reap leaves the tree before its face
 *       leaves the list, and its hidden children end after that
 *     - the thread that ends a reap holds it, and so waits for others that use it
 *     - depth > 0 exactly while owner holds the lock; other threads read owner, and never find themselves
 *     - the tag of a shared reap, or of a hidden child, is that of no handle, so only the face leads to it
 *
 * Fork: the child must find shared reaps whole. A thread that holds a reap may wait for another one, in an
 * order that the program chooses, so fork cannot take one lock after the other. It closes a gate, at which
 * outside threads wait, and takes and gives back each lock once: after that no thread holds a reap. If the
 * forking thread itself holds one (a function of the user forks), fork tries only for a while. At last it
 * enters all parts, one after the other.
 *
 * Lock rank: reaps in the program's order (reapMove and reapAdopt: by address); the list of faces; then the
 * locks of heaps and arenas. Fork takes them in this order too. A part is entered last of the first two.
 */
#ifndef REAP_SHARED_H
#define REAP_SHARED_H

#include "heap/heap_path.h"
#include "reap/misuse.h"

/* --- parts ------------------------------------------------------------------------------------ */

/* Enters a part, after a wait. False: this thread has taken the reap, or it is alone: it is held again. */
bool reap_part_enter(struct reap_part *part);

/* The part for a new object of this thread, made if need be. It may be barred. */
struct reap_part *reap_part_for_malloc(struct reap_face *face);

/* --- the whole -------------------------------------------------------------------------------- */

/* Gives a new reap its face. */
void reap_shared_begin(struct reap *reap);

/* Ends the face and hidden children of a shared reap that is taken and in no tree. Lets go of it. */
void reap_shared_end(struct reap *reap);

/* Holds a shared reap, by its handle (aborts when that is none) or by a part of it, and takes it if
 * `whole`. Returns the reap itself. Of a taken reap below a limit no part has room ahead. */
struct reap *reap_shared_hold(void *handle, const char *call, bool whole);
struct reap *reap_shared_hold_again(const struct reap *reap);
void reap_shared_let_go(const struct reap *reap);

/* The bytes that hidden children and tables hold. About, while other threads use the reap. */
size_t reap_shared_held_in_parts(const struct reap *reap);

/* The face of what may be a shared reap, or a part of one, that other threads may end meanwhile; NULL: it is
 * none. The reap's memory can be read, and nobody gives memory back (chunk_freeze). */
struct reap_face *reap_face_of_others(const struct reap *reap);

/* Holds and takes all shared reaps below a reap that this thread holds or has for itself: what changes the
 * limits of a tree needs them. They are a list. False: another thread holds one of them, and may wait for a
 * lock of this one. So the caller lets go of all that it holds, and tries again. */
bool reap_shared_hold_below(struct reap *top, struct reap_face **held);
void reap_shared_let_go_below(struct reap_face *held);

/* --- the reap of a call ---------------------------------------------------------------------- */

static inline void reap_let_go(struct reap **reap)
{
    if (*reap && UNLIKELY(reap_is_part(*reap))) reap_shared_let_go(*reap);
}

/* Stands before the variable of a held reap, and lets go of the reap where its scope ends. */
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

/* Checks a call's object, with its chunk; holds and returns its reap, which may be a hidden child. */
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

/* --- fork ------------------------------------------------------------------------------------ */

void reap_shared_fork_prepare(void);
void reap_shared_fork_parent(void);
void reap_shared_fork_child(void);

#endif
