/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.h: reaps that any thread may use at any time (REAP_SHARED).
 *
 * A shared reap is a reap behind a lock. Its handle points to its face. To reap.h's part of the fast path the
 * face looks like a reap without room, and this never changes. The library's part tells a face by its address
 * (reap_may_be_plain), and the check of handles by its tag. A call that allocates or frees objects then
 * enters a shard (shared_use.h). Any other call takes the lock and gathers; then it uses the reap as any
 * other.
 *
 *     ordinary      handle ──> | struct reap |
 *     shared        handle ──> | face: no room; lock | ──> | struct reap |, and shards (reap_shard.h)
 *
 *     first chunk   | chunk header | struct reap | starts | frees | objects ->     <- records | face |
 *
 * The face is the first record of the first chunk, at its end, and the only one that outlives a clear.
 *
 * Vocabulary
 *     hold      to have the lock of a reap, if it is shared. A call holds its reaps from the check of the
 *               handle to its end (HELD), also while it calls a function of the user. A thread that holds
 *               a reap may hold it again: so such a function may use the reap; but it must not wait for a
 *               thread that uses it
 *     outside   a thread that holds no reap
 *
 * Invariants
 *     - a face's first line is written before any thread has the handle, and when its table of shards grows
 *     - a face's tag is right exactly while the face is on the list of all faces, and changes under the
 *       list's lock. So a thread that does not know whether a reap lives tests the tag under that lock, and
 *       takes the reap's lock there too (reap_shared_try). A reap leaves the tree before its face leaves the
 *       list: so a reap in a locked list of the tree has its face (reap_shared_try_listed)
 *     - the thread that ends a reap holds it: so it waits for others that look at it
 *     - depth > 0 exactly while owner holds the lock; other threads read owner, and never find themselves
 *     - a shared reap's own tag is that of no handle, so only the face leads to it
 *     - all faces are on one list, which has a lock of its own
 *
 * Fork: the child must find shared reaps whole, whichever threads use them. A thread that holds a reap may
 * wait for another one, in an order that the program chooses. So fork must not take all locks one after the
 * other. Instead it closes a gate, at which outside threads wait, and takes and gives back each lock once. A
 * thread that takes a lock after that sees the closed gate. A thread that still holds a reap has held one
 * since before the gate was closed. So after all locks were taken once no thread holds a reap. If the forking
 * thread itself holds a reap (a function of the user forks), other threads may wait for that reap: then fork
 * tries only for a while. Then it stops the shards, and waits until no thread is in one: a thread in a shard
 * waits for no thread that holds a reap.
 *
 * Lock rank: reaps in the program's order (reapMove and reapAdopt: by address); the list of faces; then the
 * locks of heaps and arenas. Fork takes them in this order too.
 */
#ifndef REAP_SHARED_H
#define REAP_SHARED_H

#include "base/list.h"
#include "base/lock.h"
#include "reap/misuse.h"
#include "reap/reap_shard.h"

/* The first line begins as struct reap does. */
struct reap_face {
    void *self; /* this face */
    char *bump;
    char *end;
    uintptr_t starts;
    _Atomic(struct shard_table *) table; /* NULL: no shards */
    uint64_t freelists_used;
    struct reap_tables *tables;
    struct reap *reap;

    uintptr_t tag;
    struct lock lock;
    _Atomic(const void *) owner; /* the thread that holds it, as the address of its lock_depth */
    size_t depth;                /* how often the owner holds it */
    struct list_node node;
};
static_assert(sizeof(struct reap_face) <= REAP_FACE, "a face has its place in the first chunk");
static_assert(offsetof(struct reap_face, self) == offsetof(struct reap, self) &&
                  offsetof(struct reap_face, tag) == offsetof(struct reap, tag) &&
                  offsetof(struct reap_face, tables) == offsetof(struct reap, tables),
              "fast paths take a face for a reap");

/* Gives a new reap its face. */
void reap_shared_begin(struct reap *reap);

/* Ends the face of a shared reap that is in no tree any more. If this thread holds the reap, it lets go of
 * it. */
void reap_shared_end(struct reap *reap);

/* Holds, gathers and returns the reap of a shared reap's handle. Aborts when the handle is none. */
struct reap *reap_shared_hold(void *handle, const char *call);
struct reap *reap_shared_hold_again(struct reap *reap);
void reap_shared_let_go(struct reap *reap);

/* As reap_shared_hold, for a reap that is to end: no other thread is in a call on it. */
struct reap *reap_shared_hold_last(void *handle, const char *call);

/* As reap_shared_hold, but does not gather: for calls that need none of the reap's memory. */
struct reap *reap_shared_hold_lightly(void *handle, const char *call);

/* The face of a shared reap's handle. Aborts when the handle is none. */
struct reap_face *reap_shared_face(void *handle, const char *call);

/* Enters this thread's shard, after a wait or after making one; *reap is its reap. NULL: the reap is to be
 * used by one thread at a time; then *reap is held and gathered. */
struct reap_shard *reap_shared_enter_slow(struct reap_face *face, struct reap **reap);

/* The bytes that shards beside the whole reap hold, and those that they themselves take. About, while other
 * threads use the reap, which must not end. */
size_t reap_shared_held_in_shards(const struct reap_face *face);

/* Frees what waits for a shard's reap, if the reap is not gathered. */
void reap_shared_drain(struct reap_face *face, const struct reap *reap);

/* Holds the reap of what may be a face, without waiting. The memory can be read, and nobody gives it back
 * meanwhile (chunk_freeze). REAP_BUSY: another thread holds the reap. REAP_DEAD: there is none. */
enum reap_try { REAP_HELD, REAP_BUSY, REAP_DEAD };
enum reap_try reap_shared_try(struct reap_face *face);

/* The same for a reap in a list of the tree that this thread has locked. False: another thread holds it. */
bool reap_shared_try_listed(struct reap_face *face);

/* Holds and gathers all shared reaps below a reap that this thread holds or has for itself. *count is how
 * many. False: another thread holds one of them, and this one none. */
bool reap_shared_hold_below(struct reap *top, size_t *count);
void reap_shared_let_go_below(struct reap *top, size_t count);

/* Aborts when it is not the handle of a shared reap. */
void reap_shared_check(void *handle, const char *call);

/* Aborts when a call would set a handle that lies in a reap itself, or in a face: the `&` was forgotten. */
void reap_shared_check_place(void **handle, const char *call) __attribute__((cold));

/* Calls reap_shared_check_place for those few places of handles that are aligned as reaps or faces are: one
 * test for both, which a few other places pass too. */
static inline void reap_check_place(void **handle, const char *call)
{
    const uintptr_t beyond = USER_MEMORY_ALIGN - REAP_FACE - REAP_HEADER; /* a face is so far behind a reap */
    const uintptr_t bits = (USER_MEMORY_ALIGN - 1) & ~beyond;
    REAP_NOT_NULL(handle, call);
    if (UNLIKELY((((uintptr_t)handle - REAP_HEADER) & bits) == 0)) reap_shared_check_place(handle, call);
}

/* The face of a shared reap, or of the one for which a shard's reap allocates. */
static inline struct reap_face *reap_face(const struct reap *reap)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    if (UNLIKELY(first->size == 0)) return (struct reap_face *)(void *)first->next;
    return (struct reap_face *)((char *)first + first->size - REAP_FACE);
}

static inline uintptr_t reap_face_tag(const struct reap_face *face)
{
    return (uintptr_t)face ^ (uintptr_t)0xd6e8feb86659fd93;
}

static inline struct shard_table *reap_face_table(const struct reap_face *face)
{
    return atomic_load_explicit(&face->table, memory_order_acquire);
}

/* The handle by which a program knows a reap. */
static inline void *reap_handle(struct reap *reap)
{
    return reap_is_shared(reap) ? (void *)reap_face(reap) : reap;
}

static inline void reap_let_go(struct reap **reap)
{
    if (*reap && UNLIKELY(reap_is_shared(*reap))) reap_shared_let_go(*reap);
}

/* Stands before the variable of a held reap. Where the variable's scope ends, the thread lets go of the
 * reap. */
#define HELD __attribute__((cleanup(reap_let_go)))

/* Checks the handle that `call` was given; holds and returns its reap. */
static inline struct reap *reap_hold(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    struct reap *reap = *handle;
    return LIKELY(reap_is_plain(reap)) ? reap : reap_shared_hold(reap, call);
}

/* As reap_hold, for calls that need none of the reap's memory. */
static inline struct reap *reap_hold_lightly(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    struct reap *reap = *handle;
    return LIKELY(reap_is_plain(reap)) ? reap : reap_shared_hold_lightly(reap, call);
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
    if (UNLIKELY(!reap_is_plain(*handle))) reap_shared_check(*handle, call);
}

/* Checks an object that `call` was given, with its chunk; holds and returns its reap. */
static inline struct reap *reap_hold_owner(const struct reap_chunk *chunk, const void *object,
                                           const char *call)
{
    if (UNLIKELY(!chunk || !shard_chunk_is_live(chunk))) reap_misuse_object(call, NULL, object);
    struct reap *reap = chunk->owner;
    if (UNLIKELY(chunk->shared)) {
        reap = reap_shared_hold_again(reap);
        if (chunk_of(object, NULL) != chunk) chunk = NULL; /* the object was pending, and is gone by now */
    }
    if (UNLIKELY(!chunk || !reap_is_object(chunk, object))) reap_misuse_object(call, NULL, object);
    return reap;
}

/* --- fork ------------------------------------------------------------------------------------ */

void reap_shared_fork_prepare(void);
void reap_shared_fork_parent(void);
void reap_shared_fork_child(void);

#endif
