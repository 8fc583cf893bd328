/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.h: reaps that any thread may use at any time (REAP_SHARED).
 *
 * A shared reap consists of parts: ordinary reaps with a lock word each. A heap id whose threads have made
 * objects has one (if there are more ids than CPUs, some share one). The first part is the reap itself; the
 * others are hidden children, which no call shows to the program. The handle points to the reap's face. To
 * reap.h's half of the fast path the face looks like a reap without room, and this never changes. The
 * library's half tells a face by its address (handle.h), and the check of handles by its tag.
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
 * In a part a call does what it does in an ordinary reap (shared_use.h), and an object stays in its part.
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

#include "base/list.h"
#include "base/lock.h"
#include "heap/heap_path.h"
#include "reap/misuse.h"
#include "reap/reap_tree.h"

struct reap_face;

/* A holder that is no thread. */
enum { PART_TAKEN = 1, PART_FORKS = 2 };

enum { REAP_PART_PENDING = 128 * 1024 /* bytes that may wait on a part's remote list */ };

/* Threads of other parts read the second line. */
struct reap_part {
    _Atomic(uint64_t) holder; /* the thread that has entered it, as the address of its lock_depth; or 0 */
    struct reap *reap;
    bool barred; /* no object is to be made here */

    _Alignas(64) struct reap_face *face; /* the shared reap's */
    struct reap_part *next;              /* the reap itself is the first one */
    _Atomic(unsigned) pending;           /* units that have come onto the remote list, about */
};

/* A place for the part of each id, modulo the number of places. */
typedef _Atomic(struct reap_part *) reap_part_place;

/* The first line begins as struct reap does. */
struct reap_face {
    void *self; /* this face */
    char *bump;
    char *end;
    size_t mask;                      /* the number of places, a power of two, less one */
    _Atomic(reap_part_place *) table; /* NULL: no object was made yet */
    struct reap_face *next_held;      /* of reap_shared_hold_below */
    struct reap_tables *tables;
    struct reap *reap;

    uintptr_t tag;
    struct lock lock;
    _Atomic(const void *) owner; /* the thread that holds it, as the address of its lock_depth */
    uint32_t depth;              /* how often the owner holds it */
    bool taken;
    bool alone;
    struct list_node node;

    struct reap_part part;
};
static_assert(sizeof(struct reap_face) <= REAP_FACE, "a face has its place in the first chunk");
static_assert(offsetof(struct reap_face, self) == offsetof(struct reap, self) &&
                  offsetof(struct reap_face, tag) == offsetof(struct reap, tag) &&
                  offsetof(struct reap_face, tables) == offsetof(struct reap, tables),
              "fast paths take a face for a reap");

/* --- parts ------------------------------------------------------------------------------------ */

/* The part that a shared reap or a hidden child is. */
static inline struct reap_part *reap_own_part(const struct reap *reap)
{
    ASSERT(reap_is_part(reap));
    return reap_records(reap)->part;
}

/* The face of a shared reap, or of the one that a hidden child belongs to. */
static inline struct reap_face *reap_face(const struct reap *reap) { return reap_own_part(reap)->face; }

/* The reap that the program knows: for a hidden child the shared reap, else the reap itself. */
static inline struct reap *reap_known(const struct reap *reap)
{
    return UNLIKELY(reap_is_part(reap)) ? reap_face(reap)->reap : (struct reap *)(uintptr_t)reap;
}

/* The handle by which a program knows a reap. */
static inline void *reap_handle(struct reap *reap)
{
    return reap_is_part(reap) ? (void *)reap_face(reap) : reap;
}

/* The next hidden child. Begins with the reap itself; NULL after the last one, and for an ordinary reap. */
static inline struct reap *reap_next_part(const struct reap *reap)
{
    if (LIKELY(!reap_is_part(reap))) return NULL;
    const struct reap_part *next = __atomic_load_n(&reap_own_part(reap)->next, __ATOMIC_ACQUIRE);
    return next ? next->reap : NULL;
}

#define FOR_EACH_PART(part, known)                                                                           \
    for (struct reap *part = (known); part != NULL; part = reap_next_part(part))

/* As reap_tree_after, with the hidden children of shared reaps. */
static inline struct reap *reap_part_after(const struct reap *top, const struct reap *reap)
{
    struct reap *part = reap_next_part(reap);
    return part ? part : reap_tree_after(top, reap_known(reap));
}

/* The part of a shared reap that has an object; the reap itself if it is none, and for an ordinary reap. */
static inline struct reap *reap_part_with(struct reap *known, const void *object)
{
    if (LIKELY(!reap_is_shared(known))) return known;
    const struct reap_chunk *chunk = chunk_of(object, NULL);
    bool is_in_part = chunk && reap_chunk_is_live(chunk) && reap_known(chunk->owner) == known;
    return is_in_part ? chunk->owner : known;
}

/* The part of this thread's id; NULL: none yet, or it is one of more ids than there are places. */
static ALWAYS_INLINE struct reap_part *reap_part_of(const struct reap_face *face, unsigned id)
{
    reap_part_place *table = atomic_load_explicit(&face->table, memory_order_acquire);
    bool is_there = table != NULL && id <= face->mask;
    return LIKELY(is_there) ? atomic_load_explicit(&table[id], memory_order_acquire) : NULL;
}

static inline uint64_t reap_part_me(void) { return (uintptr_t)&lock_depth; }

/* Enters a part if no thread has entered it. */
static ALWAYS_INLINE bool reap_part_try(struct reap_part *part)
{
    uint64_t none = 0;
    return LIKELY(atomic_compare_exchange_strong_explicit(&part->holder, &none, reap_part_me(),
                                                          memory_order_acquire, memory_order_relaxed));
}

static inline void reap_part_leave(struct reap_part *part)
{
    ASSERT(part->holder == reap_part_me());
    atomic_store_explicit(&part->holder, 0, memory_order_release);
}

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

/* Returns true if this thread has taken the shared reap that a part belongs to. */
static inline bool reap_shared_is_taken(const struct reap *reap)
{
    const struct reap_face *face = reap_face(reap);
    bool is_held = atomic_load_explicit(&face->owner, memory_order_relaxed) == &lock_depth;
    return is_held && (face->taken || face->alone);
}

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

static inline uintptr_t reap_face_tag(const struct reap_face *face)
{
    return (uintptr_t)face ^ (uintptr_t)0xd6e8feb86659fd93;
}

/* --- fork ------------------------------------------------------------------------------------ */

void reap_shared_fork_prepare(void);
void reap_shared_fork_parent(void);
void reap_shared_fork_child(void);

#endif
