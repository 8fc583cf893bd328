/* SPDX-License-Identifier: Apache-2.0 */
/* region.h: a reap's first chunk, and with it how reaps are created, cleared and destroyed.
 *
 * Threads: the reap's own. Other threads may use the parent meanwhile.
 */
#ifndef REGION_H
#define REGION_H

#include "region/reap_dead.h"

/* Bytes before the first objects of a first chunk. */
enum {
    REAP_SMALL_HEAD = REAP_HEADER + sizeof(struct reap) + offsetof(struct reap_records, tables),
    REAP_FIRST_HEAD = (REAP_HEADER + sizeof(struct reap) + sizeof(struct reap_records) + 63) / 64 * 64
};
static_assert(REAP_FIRST_HEAD + 2 * REAP_FIRST_SIZE / 128 < REAP_FIRST_SIZE * 7 / 8 &&
                  REAP_SMALL_HEAD + REAP_UNIT <= REAP_SMALL_SIZE * 5 / 8 && REAP_SMALL_HEAD % REAP_UNIT == 0,
              "a first chunk is for objects");
static inline size_t reap_head(size_t size)
{
    return size == REAP_SMALL_SIZE ? REAP_SMALL_HEAD : REAP_FIRST_HEAD;
}

/* The time of reapSetClock in seconds; 0: there is none. Reaps note it, for their ages. */
extern HIDDEN _Atomic(uint32_t) reap_seconds;

/* A byte has the number of the size of the next child's first chunk, the number with which that child begins
 * for its own children, and the votes: a number from -8 to 0, those for more less those for less.
 *
 *     votes : 4 | below : 2 | step : 2 */
enum { REAP_VOTE = 16, REAP_BELOW = 4, REAP_STEPS = REAP_FIRST_STEPS + 1 };
static inline unsigned reap_step(uint8_t votes) { return votes % REAP_STEPS; }
static inline unsigned reap_step_below(uint8_t votes) { return votes / REAP_BELOW % REAP_STEPS; }

/* What the step in a parent's byte says of a child. */
struct reap_step {
    uint32_t size;   /* bytes of its first chunk */
    uint16_t least;  /* bytes of objects that do not fit into the chunk of one step less, if there is one */
    uint8_t settled; /* what the byte comes to when this size is right for all; without `below` */
};
extern HIDDEN const struct reap_step reap_steps[REAP_STEPS];

static inline size_t reap_size_of_step(unsigned step) { return reap_steps[step].size; }

static inline size_t reap_child_size(const struct reap *parent)
{
    return reap_size_of_step(reap_step(atomic_load_explicit(&parent->below.votes, memory_order_relaxed)));
}

/* Creates a reap in a first chunk of the size that its parent's children need. NULL: no memory (ENOMEM). */
struct reap *reap_region_create(const struct reap *parent);

/* Makes a dead reap, of which a program may have written to any word since, as new but for its tags; the
 * header of its chunk is as it was. NULL: that is not so, and the chunk was given back. */
struct reap *reap_region_renew(struct reap *reap, size_t size);

/* Creates a reap with a chunk source, and a first chunk of size bytes. If the source has a buffer, the first
 * chunk lies in it, and size is the buffer's, at least REAP_BUFFER_MIN. NULL: no memory (ENOMEM). */
struct reap *reap_region_create_from(const struct chunk_source *backing, size_t size);

/* Gives a new reap, or a cached child, its tags, and opens its hole. */
static ALWAYS_INLINE struct reap *reap_region_enliven(struct reap *reap)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    ASSERT(reap->tag == 0 && first->owner == reap && reap->peak == first->size &&
           (apart_on ? !reap->current : reap->current == first && reap_unit(reap->bump) == first->first));
    first->tag = reap_chunk_tag(first);
    reap->end = reap->bump_max;
    reap->made_at = atomic_load_explicit(&reap_seconds, memory_order_relaxed);
    reap->tag = reap_tag(reap);
    return reap;
}

enum {
    REAP_VOTES_MIN = -8,   /* no more small children than these count */
    REAP_VOTES_SHRINK = -4 /* at which the first chunk of the next child is halved, if it was doubled */
};

/* Votes, for a reap that ends, on how big its parent's next child's first chunk should be. The first one
 * returns the parent's byte, if it was this, after that. */
uint8_t reap_region_votes_after(const struct reap *reap, uint8_t votes);
static inline void reap_region_learn(const struct reap *reap)
{
    _Atomic(uint8_t) *votes = &reap->parent->below.votes;
    uint8_t before = atomic_load_explicit(votes, memory_order_relaxed);
    atomic_store_explicit(votes, reap_region_votes_after(reap, before), memory_order_relaxed);
}

/* Returns true if a reap's objects would have fitted into a first chunk of this size. */
static inline bool reap_region_fits(const struct reap *reap, size_t size)
{
    size_t used = (size_t)(reap->bump - (char *)reap_address(reap_first_chunk(reap)->first));
    return reap_head(size) + used + REAP_UNIT <= size;
}

/* Votes so for a child that only bumped in its first chunk, by a few instructions: if its size is the step's,
 * and the step stays. False: that is not so, and nothing has changed. */
static ALWAYS_INLINE bool reap_region_vote(const struct reap *reap, struct reap *parent)
{
    const struct reap_chunk *first = reap_first_chunk(reap);
    uint8_t votes = atomic_load_explicit(&parent->below.votes, memory_order_relaxed);
    uint8_t own = atomic_load_explicit(&reap->below.votes, memory_order_relaxed);
    const struct reap_step *step = UNKNOWN(&reap_steps[reap_step(votes)]);
    if (UNLIKELY(first->size != step->size)) return false;
    uint8_t settled = (uint8_t)(step->settled + reap_step(own) * REAP_BELOW);
    bool is_right = (size_t)(reap->bump - (char *)reap_address(first->first)) >= step->least;
    if (LIKELY(is_right && votes == settled)) return true;
    if ((votes ^ settled) % REAP_VOTE != 0) return false;
    bool is_less = !is_right || (int8_t)votes > (int8_t)settled;
    if (!is_right && (int8_t)votes < (REAP_VOTES_SHRINK + 2) * REAP_VOTE) return false;
    uint8_t after = (uint8_t)(is_less ? votes - REAP_VOTE : votes + REAP_VOTE);
    ASSERT(after == reap_region_votes_after(reap, votes));
    atomic_store_explicit(&parent->below.votes, after, memory_order_relaxed);
    return true;
}

/* 0: the reap was born at no mark, has no flags, and is in region mode. */
static ALWAYS_INLINE uint32_t reap_states(const struct reap *reap)
{
    uint32_t states;
    static_assert(offsetof(struct reap, heap) == offsetof(struct reap, born) + 3, "one word has them");
    memcpy(&states, (const char *)reap + offsetof(struct reap, born), sizeof states);
    return states;
}

/* 0: the reap has had no tables, and has nothing of other threads. */
static ALWAYS_INLINE uintptr_t reap_region_more(const struct reap *reap)
{
    uintptr_t more = (uintptr_t)reap->own;
    more |= atomic_load_explicit(&reap->remote, memory_order_relaxed);
    more |= (uintptr_t)atomic_load_explicit(&reap->remote_chunks, memory_order_relaxed);
    return more;
}

/* Returns true if a reap without REAP_UNMAPPED has never done more than to bump in its first chunk, of so
 * many bytes, and back, and has its hole: so a new bump pointer empties it. `more` must be 0, too. */
static ALWAYS_INLINE bool reap_region_only_bumped(const struct reap *reap, size_t size, uintptr_t more)
{
    more |= reap->heap | reap_region_more(reap);
    more |= (uintptr_t)reap->current ^ (uintptr_t)reap_first_chunk(reap);
    return more == 0 && reap->peak == size;
}

/* Forgets the objects of such a reap if it has no children, no records, and no flags but these. False: it is
 * another one, and nothing has changed. */
static ALWAYS_INLINE bool reap_region_forget(struct reap *reap, unsigned flags)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    size_t size = first->size;
    unsigned special = reap->flags & ~flags;
    uintptr_t more = (uintptr_t)reap->below.first | special | first->has_records;
    if (UNLIKELY(!reap_region_only_bumped(reap, size, more))) return false;
    ASSERT(!reap->cleanups && !reap->spare_cleanups);
    if (reap->bump == (char *)reap_address(first->first)) return true;
    reap->bump = reap_address(first->first);
    reap->end = reap->bump_max;
    reap_dead_forget(first);
    reap_lay_out_starts(first, size, reap_head(size));
    return true;
}

/* Forgets the records of such a reap, so that the child of a fork at any moment finds all or none. */
static ALWAYS_INLINE void reap_region_forget_records(struct reap *reap, struct reap_chunk *first, size_t size)
{
    first->end_unit = ((uintptr_t)first + size) / REAP_UNIT - 1;
    reap->bump_max = reap_address(first->end_unit);
    reap->spare_cleanups = NULL;
    atomic_signal_fence(memory_order_release);
    first->has_records = false;
}

/* Forgets the objects and records of such a reap. */
static ALWAYS_INLINE void reap_region_restart(struct reap *reap, size_t size)
{
    struct reap_chunk *first = reap_first_chunk(reap);
    ASSERT(first->size == size && first->is_mapped && !first->lives && reap->current == first && !reap->keep);
    ASSERT(reap->tables == &reap_no_tables && !reap->cleanups);
    ASSERT(first->has_records || (reap->bump_max == reap_address(first->end_unit) && !reap->spare_cleanups));
    reap_lay_out_starts(first, size, reap_head(size));
    reap_dead_forget(first);
    if (UNLIKELY(first->has_records)) reap_region_forget_records(reap, first, size);
    reap->bump = reap_address(first->first);
    reap->end = reap->bump_max;
}

/* Makes a dead reap of one that is as new otherwise: a cached child. */
static ALWAYS_INLINE void reap_region_put_to_rest(struct reap *reap)
{
    /* reapDestroy(reap) has cleared it: a later use of it must be recognized. A store of its own: gcc's store
     * of 16 bytes, with bump, holds up the next child's objects (20 of them 42 -> 60 ns). */
    __atomic_store_n(&reap->self, (void *)reap, __ATOMIC_RELAXED);
    reap->end = reap->bump;
    reap->name = NULL;
    reap->tag = reap_first_chunk(reap)->tag = 0;
}

/* Takes a reap in heap mode, whose objects are to be forgotten, back to region mode, as if it had bumped up
 * to the hole. False: it has more than its first chunk, and nothing has changed. */
bool reap_region_end_heap(struct reap *reap);

/* Gives back every chunk but the first one. The reap has ended, and calls recognize its handle as dead.
 * may_stay: makes a cached child of it. Returns true if it is one. */
bool reap_region_destroy(struct reap *reap, bool may_stay);

/* Forgets every object, and every record but the name. Keeps the first chunk, and `keep` bytes of others. */
void reap_region_clear(struct reap *reap);

/* Gives back spares beyond `keep` bytes, and what reap_free_trim does. */
void reap_region_trim(struct reap *reap, size_t keep);

#endif
