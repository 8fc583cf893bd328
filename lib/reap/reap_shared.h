/* SPDX-License-Identifier: Apache-2.0 */
/* reap_shared.h: reaps that any thread may use at any time (REAP_SHARED).
 *
 * A shared reap is a reap behind a lock. Its handle does not point to it but to its face, which looks to the
 * fast paths like a reap that has no room and knows no object, and never changes. So they ask nothing, and a
 * call ends up where handles are checked: there the face is known by its tag, the lock taken, the reap used
 * as any other.
 *
 *     ordinary      handle ──> | struct reap |
 *     shared        handle ──> | face: no room; lock | ──> | struct reap |
 *
 *     first chunk   | chunk header | struct reap | starts | frees | objects ->     <- records | face |
 *
 * The face is the first record of the first chunk, at its end, and the only one that outlives a clear.
 *
 * Vocabulary
 *     hold      to have the lock of a reap, if it is shared. Calls hold what they use from the check of the
 *               handle to their end (HELD), also while they call functions of the user's. A thread that holds
 *               a reap may hold it again: so such a function may use the reap; but it must not wait for a
 *               thread that uses it
 *     outside   a thread that holds no reap
 *
 * Invariants
 *     - a face's first line is written once, before anybody has the handle, and its tag once
 *       more, when the reap ends
 *     - depth > 0 just while owner holds the lock; others read owner, and never see themselves there
 *     - a shared reap's own tag is that of no handle, so only the face leads to it
 *     - all faces are on one list, which has a lock of its own
 *
 * Fork: the child shall find shared reaps whole, whoever uses them. Threads that hold a reap may wait for
 * another, in any order that is their program's; so fork must not take one lock after the other. It closes a
 * gate, behind which threads that hold nothing wait, and passes through each lock once: who got it after that
 * has seen the gate. A thread that is within has had the lock of some reap since before the gate was closed;
 * so when all were passed, nobody is. Where the forking thread holds a reap itself (a function of the user's
 * forks) others may wait for that one, so it tries for a while only, as with all locks (lock.h).
 *
 * Lock rank: reaps in the order of their program's (reapMove and reapAdopt: by address); the list of faces;
 * then those of lower layers, fork's order too.
 */
#ifndef REAP_SHARED_H
#define REAP_SHARED_H

#include "base/list.h"
#include "base/lock.h"
#include "reap/misuse.h"

/* The first line begins as struct reap does. */
struct reap_face {
    void *self; /* this face */
    char *bump;
    char *end;
    uintptr_t starts;
    char *bump_max;
    uint64_t freelists_used;
    struct reap_tables *tables;
    struct reap *reap;

    uintptr_t tag;
    struct lock lock;
    _Atomic(const void *) owner; /* the thread that holds it, by its lock_depth's address */
    size_t depth;                /* how often */
    struct list_node node;
};
static_assert(sizeof(struct reap_face) <= REAP_FACE, "a face has its place in the first chunk");
static_assert(offsetof(struct reap_face, self) == offsetof(struct reap, self) &&
                  offsetof(struct reap_face, tag) == offsetof(struct reap, tag) &&
                  offsetof(struct reap_face, tables) == offsetof(struct reap, tables),
              "fast paths take a face for a reap");

/* Gives a new reap its face. */
void reap_shared_begin(struct reap *reap);

/* A shared reap ends; if this thread holds it, it does no more. */
void reap_shared_end(struct reap *reap);

/* The reap of a handle that is no ordinary reap's, held. Aborts when it is no reap's at all. */
struct reap *reap_shared_hold(void *handle, const char *call);
void reap_shared_hold_again(struct reap *reap);
void reap_shared_let_go(struct reap *reap);

/* The same, if it is a live reap's face that can be had at once. */
enum reap_try { REAP_HELD, REAP_BUSY, REAP_DEAD };
enum reap_try reap_shared_try(struct reap_face *face);

/* Aborts when it is neither. */
void reap_shared_check(void *handle, const char *call);

/* Aborts when a call would set a handle that lies in a reap itself, or in a face: the `&` was forgotten. */
void reap_shared_check_place(void **handle, const char *call) __attribute__((cold));

/* The same of a handle's place, most of which are not aligned as reaps are. */
static inline void reap_check_place(void **handle, const char *call)
{
    static_assert(REAP_HEADER == REAP_FACE && USER_MEMORY_ALIGN % (4 * REAP_FACE) == 0, "one test for both");
    const uintptr_t bits = (USER_MEMORY_ALIGN - 1) & ~(uintptr_t)(2 * REAP_FACE);
    REAP_NOT_NULL(handle, call);
    if (UNLIKELY((((uintptr_t)handle + REAP_FACE) & bits) == 0)) reap_shared_check_place(handle, call);
}

static inline struct reap_face *reap_face(const struct reap *reap)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    return (struct reap_face *)((char *)first + first->size - REAP_FACE);
}

/* What a user knows a reap by. */
static inline void *reap_handle(struct reap *reap)
{
    return reap_is_shared(reap) ? (void *)reap_face(reap) : reap;
}

static inline void reap_let_go(struct reap **reap)
{
    if (*reap && UNLIKELY(reap_is_shared(*reap))) reap_shared_let_go(*reap);
}

/* Before a variable of a reap that is held: it is let go where the variable ends. */
#define HELD __attribute__((cleanup(reap_let_go)))

/* The reap of a handle that `call` was given. */
static inline struct reap *reap_hold(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    struct reap *reap = *handle;
    return LIKELY(reap_is_plain(reap)) ? reap : reap_shared_hold(reap, call);
}

/* The same of two handles. */
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

/* Nothing but the check. */
static inline void reap_check(void **handle, const char *call)
{
    REAP_NOT_NULL(handle, call);
    if (UNLIKELY(!reap_is_plain(*handle))) reap_shared_check(*handle, call);
}

/* The owner of a live object that `call` was given, where its chunk is known. */
static inline struct reap *reap_hold_owner(const struct reap_chunk *chunk, const void *object,
                                           const char *call)
{
    if (UNLIKELY(!chunk || !reap_chunk_is_live(chunk))) reap_misuse_object(call, NULL, object);
    struct reap *reap = chunk->owner;
    if (UNLIKELY(chunk->shared)) reap_shared_hold_again(reap);
    if (UNLIKELY(!reap_is_object(chunk, object))) reap_misuse_object(call, NULL, object);
    return reap;
}

/* --- fork ------------------------------------------------------------------------------------ */

void reap_shared_fork_prepare(void);
void reap_shared_fork_parent(void);
void reap_shared_fork_child(void);

#endif
