/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.h: reaps that any thread may use at any time (REAP_SHARED).
 *
 * A shared reap consists of parts: ordinary reaps with a lock word each. A heap id whose threads have made
 * objects has one, or have freed some of other parts, but not below a limit (if there are more ids than CPUs,
 * some share one). The first part is the reap itself; the others are hidden children, which no call shows to
 * the program. The handle points to the reap's face. To reap.h's half of the fast path the face looks like a
 * reap without room, and this never changes. The library's half tells a face by its address (misuse.h), and
 * the check of handles by its tag.
 *
 *     ordinary      handle ──> | struct reap |
 *     shared        handle ──> | face: lock; part | ──> | struct reap |
 *                                 └── table, by id ──> | part | ──> | struct reap |, a hidden child
 *
 *     first chunk   | chunk header | struct reap | objects ->     <- records | face |
 *
 * What each call does with a shared reap:
 *
 *     reapMalloc and all that make an object   enters the part of its thread's id
 *     reapFree, reapFreeAny, free              the same; an object of another part goes onto that part's list
 *     reapRealloc, builders                    enters the part that has the object
 *     reapUsableSize, reapOf                   only reads
 *     reapParent, reapName, reapHeldBytes,     takes the lock of the face
 *     reapCancelOnDestroy, reapCreate (parent)
 *     all others                               takes that lock, and then all parts
 *
 * In a part a call does what it does in an ordinary reap (shared_use.h), and an object stays in its part. An
 * id without a part that frees an object enters the part that has it; with a sixteenth such free it gets one.
 * When more than REAP_PART_PENDING bytes wait on a part's list, or below a limit, the thread that frees
 * enters that part, and frees them: so memory goes back also when no thread has that id any more. What is
 * free in one part does not serve the threads of another one.
 *
 * Vocabulary
 *     enter     to become the holder of a part, by one atomic instruction; a store ends this
 *     hold      to have the lock of a shared reap, from the check of the handle to the call's end (HELD)
 *     take      to become the holder of all parts of a held reap, and to free what is pending
 *     outside   a thread that holds no reap
 *     alone     a reap without parts but itself: its chunks come from the program, or objects are watched
 *
 * A call holds its reap also while a function of the user runs. The thread may hold the reap again: so such a
 * function may use the reap; but it must not wait for a thread that uses it. A reap that is alone is always
 * taken, and each call takes the lock.
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
 *       whether a reap lives enters nothing and locks nothing of it: it only reads (reap_face_of_others). A
 *       reap leaves the tree before its face leaves the list, and its hidden children end after that: so a
 *       reap in a locked list of the tree has all of them
 *     - the thread that ends a reap holds it: so it waits for others that use it
 *     - depth > 0 exactly while owner holds the lock; other threads read owner, and never find themselves
 *     - the tag of a shared reap, or of a hidden child, is that of no handle, so only the face leads to it
 *
 * Fork: the child must find shared reaps whole, whichever threads use them. A thread that holds a reap may
 * wait for another one, in an order that the program chooses. So fork must not take all locks one after the
 * other. Instead it closes a gate, at which outside threads wait, and takes and gives back each lock once:
 * after that no thread holds a reap. If the forking thread itself holds one (a function of the user forks),
 * others may wait for that: then fork tries only for a while. At last it enters all parts, one after the
 * other.
 *
 * Lock rank: reaps in the program's order (reapMove and reapAdopt: by address); the list of faces; then the
 * locks of heaps and arenas. Fork takes them in this order too. A part is entered last of the first two.
 */
#ifndef REAP_SHARED_H
#define REAP_SHARED_H

#include "heap/heap_path.h"
#include "reap/misuse.h"

/* --- parts ------------------------------------------------------------------------------------ */

/* Enters a part, after a wait. False: this thread has taken the reap, or it is alone; then the thread holds
 * it once more. */
bool reap_part_enter(struct reap_part *part);

/* The part for a new object of this thread, made if need be. It may be barred. */
struct reap_part *reap_part_for_malloc(struct reap_face *face);

/* --- the whole -------------------------------------------------------------------------------- */

/* Gives a new reap its face. */
void reap_shared_begin(struct reap *reap);

/* Ends the face and the hidden children of a shared reap that is in no tree any more, and that this thread
 * has taken. Lets go of it. */
void reap_shared_end(struct reap *reap);

/* Holds a shared reap, by its handle (aborts when that is none) or by a part of it, and takes it if the call
 * needs the whole. Returns the reap itself. Of a taken reap below a limit no part has room ahead: whichever
 * needs it can have it. */
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

/* --- fork ------------------------------------------------------------------------------------ */

void reap_shared_fork_prepare(void);
void reap_shared_fork_parent(void);
void reap_shared_fork_child(void);

#endif
