/* SPDX-License-Identifier: Apache-2.0 */
/* reap_dead.h: frees in region mode.
 *
 * A free in the current chunk of a reap in region mode sets a *dead bit* where the block starts, and puts the
 * block onto a list that has its links in the blocks. Nothing else changes: no tables, no live bits, and the
 * fast ways of region.h clear and end the reap. The next objects ask: `end` becomes `bump`, so each is a
 * call, which takes a dead block of exactly its size. When the list is empty, or DEAD_MISSES objects have
 * found none, objects bump inline again, until the next free.
 *
 *     chunk    | object | dead 1 | object | dead 2 | object | hole    |
 *     list                ^       <-------- ^ dead_list  ^ bump       ^ bump_max
 *
 * The reap goes into heap mode (reap_free.h) when its hole is used up, after DEAD_FREES frees, by a free in
 * another chunk, and by a mark: live bits are then the start bits without the dead ones.
 *
 * Invariants (reap_is_valid checks them)
 *     - only the current chunk of a reap in region mode has dead bits, and its bits lie in the map
 *     - `dead` is the sum of the units of the blocks with dead bits
 *     - the list is a hint: what it names is a dead block if its dead bit is set
 *
 * Threads: the reap's own. Others ask reap_chunk_is_dead_at.
 */
#ifndef REAP_DEAD_H
#define REAP_DEAD_H

#include "arena/chunk_map.h"
#include "region/reap_bump.h"

enum {
    DEAD_FREES = 4, /* dead bits that were set when heap mode pays */
    DEAD_MISSES = 2 /* objects that ask in vain */
};

/* The first word of a dead block: the one after it on the list, as in `first`, and its units. */
typedef uint64_t dead_block __attribute__((may_alias));
static inline dead_block dead_block_of(uint32_t next, size_t units) { return next | (uint64_t)units << 32; }
static inline uint32_t dead_block_next(dead_block block) { return (uint32_t)block; }
static inline size_t dead_block_units(dead_block block) { return block >> 32; }

/* Returns true if a free in the current chunk may set a dead bit. */
static ALWAYS_INLINE bool reap_dead_may_be_set(const struct reap *reap)
{
    return !reap->heap && !(reap->flags & (REAP_SPECIAL | REAP_SOURCED | REAP_UNMAPPED));
}

/* Of a mapped chunk: the dead bits of 32 units are so far behind their start bits. */
enum { DEAD_BITS = CHUNK_MAP_BITS / sizeof(bitmap_half) };
static ALWAYS_INLINE bitmap_half *reap_dead_bits(const struct reap_chunk *chunk, size_t unit)
{
    return (bitmap_half *)chunk->starts + unit / 32 + DEAD_BITS;
}
static ALWAYS_INLINE bool reap_dead_at(const struct reap_chunk *chunk, size_t unit)
{
    return *reap_dead_bits(chunk, unit) >> unit % 32 & 1;
}

/* Clears a chunk's dead bits before the first one is set. A free that makes no call saves no registers. */
static ALWAYS_INLINE void reap_dead_begin(struct reap_chunk *chunk)
{
    uint64_t *words = (uint64_t *)(void *)chunk_map_lives(chunk);
    if (LIKELY(chunk->size == REAP_FIRST_SIZE)) {
        memset(words, 0, REAP_FIRST_SIZE / REAP_UNIT / 8);
    } else {
        for (size_t i = 0; i < chunk->size / 1024; i++) *UNKNOWN(&words[i]) = 0; /* no memset */
    }
    chunk->dead_list = (struct dead_blocks){0, 0, DEAD_MISSES};
}

/* Counts units more, or less: afterwards other threads may look at the bits. */
static ALWAYS_INLINE void reap_dead_count(struct reap_chunk *chunk, size_t units)
{
    __atomic_store_n(&chunk->dead, chunk->dead + units, __ATOMIC_RELEASE);
}

/* Makes a block of the current chunk a dead one. */
static ALWAYS_INLINE void reap_dead_set(struct reap *reap, struct reap_chunk *chunk, size_t unit, size_t end)
{
    ASSERT(chunk == reap->current && unit < end && end < reap_unit(reap->bump));
    if (chunk->dead == 0) reap_dead_begin(chunk);
    *reap_dead_bits(chunk, unit) |= (bitmap_half)1 << unit % 32;
    reap_dead_count(chunk, end - unit);
    struct dead_blocks *list = &chunk->dead_list;
    *(dead_block *)reap_address(unit) = dead_block_of(list->first, end - unit);
    list->first = (uint32_t)(unit - chunk->first + 1);
}

/* Lets the next objects ask for dead blocks. */
static ALWAYS_INLINE void reap_dead_ask(struct reap *reap, struct reap_chunk *chunk)
{
    chunk->dead_list.frees++;
    chunk->dead_list.misses = 0;
    reap->end = reap->bump;
}

/* Returns true if an object of a reap that cannot bump should ask for a dead block. */
static ALWAYS_INLINE bool reap_dead_is_asked(const struct reap *reap)
{
    const struct reap_chunk *chunk = reap->current;
    if (!chunk || chunk->dead == 0 || chunk->dead_list.misses >= DEAD_MISSES) return false;
    return chunk->dead_list.first != 0 && reap_dead_may_be_set(reap);
}

/* Makes an object of so many units, of a dead block or by a bump. NULL: the hole is too small. */
void *reap_dead_take(struct reap *reap, size_t units);

/* After the bump pointer has gone back: makes the dead blocks before it a part of the hole. */
void reap_dead_absorb(struct reap *reap, struct reap_chunk *chunk);

/* Forgets the dead bits of a chunk whose objects are forgotten, and what the bump pointer came back from. */
static ALWAYS_INLINE void reap_dead_forget(struct reap_chunk *chunk)
{
    memset(&chunk->high, 0, sizeof chunk->high + sizeof chunk->dead);
}
static_assert(offsetof(struct reap_chunk, dead) == offsetof(struct reap_chunk, high) + sizeof(size_t),
              "one store");

#endif
