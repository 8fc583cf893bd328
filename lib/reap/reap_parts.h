/* SPDX-License-Identifier: Apache-2.0 */
/* reap_parts.h: the structures of shared reaps, which reap_shared.h explains. */
#ifndef REAP_PARTS_H
#define REAP_PARTS_H

#include "base/list.h"
#include "base/lock.h"
#include "reap/reap_tree.h"
#include "region/reap_chunk.h"

struct reap_face;

/* A holder that is no thread. */
enum { PART_TAKEN = 1, PART_FORKS = 2 };

enum { REAP_PART_PENDING = 128 * 1024 /* bytes that may wait on a part's remote list */ };

/* Threads of other parts read the second line. */
struct reap_part {
    _Atomic(uint64_t) holder; /* the thread that has entered it, as the address of its lock_depth; or 0 */
    struct reap *reap;
    bool barred;                        /* no object is to be made here */
    uint8_t visits;                     /* frees here, of threads that had not entered a part of theirs */
    uint8_t turn;                       /* the next place in recent, modulo REAP_AHEAD */
    _Atomic(void *) recent[REAP_AHEAD]; /* of other parts, freed last by threads that had entered this one */

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

static inline uintptr_t reap_face_tag(const struct reap_face *face)
{
    return (uintptr_t)face ^ (uintptr_t)0xd6e8feb86659fd93;
}

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

/* Returns true if this thread has taken the shared reap that a part belongs to. */
static inline bool reap_shared_is_taken(const struct reap *reap)
{
    const struct reap_face *face = reap_face(reap);
    bool is_held = atomic_load_explicit(&face->owner, memory_order_relaxed) == &lock_depth;
    return is_held && (face->taken || face->alone);
}

#endif
