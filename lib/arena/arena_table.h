/* SPDX-License-Identifier: Apache-2.0 */
/* arena_table.h: the data of all arenas: their structs, hints where to look, and sums.
 *
 * Above it huge_pages.c decides which arenas have huge pages, and reclaim.c gives memory back to the OS and
 * keeps the limit on memory. Above these are slots (arena_slots.c) and mappings (mappings.c).
 *
 *     held = used slots + dirty slots + mappings, in bytes
 *     unused = dirty slots
 *
 * A group of 64 arenas says in a few words which arenas are worth a look:
 *
 *     group     | free | dirty | spare | made |  arenas[64]  | next -> ...
 *                  a bit of each word for each arena
 *
 * `free` and `dirty` are hints. A thread that frees slots sets the bit afterwards. A thread that finds
 * nothing behind a bit clears it and looks again. So each bit that should be set is set once no thread is
 * between two such steps. A thread that claims a bit of `spare` has the struct.
 */
#ifndef ARENA_TABLE_H
#define ARENA_TABLE_H

#include "arena/arena.h"
#include "base/lock.h"

enum {
    ARENA_LOOK_FOR_LIMIT = 16 * 1024 * 1024, /* bytes held; below, no limit matters */
    ARENA_MAYBE_SPARSE = 4,                  /* slots of an object of which only parts may be touched */
    ARENA_SPARE_ADDRESSES =
        32 * 1024 * 1024, /* bytes: so many, plus as many as are held, may be mapped without use */
    ARENA_TOGETHER = 16,  /* arenas made at a time, at most */
    GROUP_ARENAS = 64,
};

struct arena_group {
    _Atomic uint64_t free;  /* arenas that may have a free slot */
    _Atomic uint64_t dirty; /* ... a dirty slot */
    _Atomic uint64_t spare; /* structs without memory */
    _Atomic uint64_t made;  /* structs that exist or are being made */
    _Atomic(struct arena *) arenas[GROUP_ARENAS];
    _Atomic(struct arena_group *) next;
};

/* What several threads change, each word by itself. Sums are right when no thread is between two steps. */
struct arenas {
    struct gate gate;
    struct arena_group groups;      /* the first */
    _Atomic(struct arena *) all;    /* along ->next */
    _Atomic(struct arena *) latest; /* the arena in which a slot became free last */
    _Atomic bool shared;            /* several threads allocate */
    _Atomic bool creating;          /* a thread is making arenas */
    _Atomic bool has_purger;        /* a thread waits for unused memory, to purge it */
    _Atomic size_t held, peak;
    _Atomic size_t returned; /* bytes that went back to the OS, all together */
    _Atomic size_t mapped;   /* bytes of addresses */
    _Atomic size_t near;     /* bytes held from which on the limit is near, or should be looked for */
    _Atomic bool limit_is_known;
    _Atomic size_t dirty_slots;
    _Atomic uint64_t purged_at;
    _Atomic uint64_t idle_for; /* ms: slots that are given now have been free for that long, in truth */
};

extern HIDDEN struct arenas arenas;

static inline uint64_t arena_slot_mask(unsigned first, unsigned n)
{
    return (n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX) << first;
}

static inline uint64_t arena_bit(const struct arena *arena) { return (uint64_t)1 << arena->index; }

static inline void arena_set_base(struct arena *arena, char *base)
{
    __atomic_store_n(&arena->base, base, __ATOMIC_RELAXED);
}

/* The mapping of an arena that may be another's. Whoever owns some of its slots reads it as it is. */
static inline size_t arena_mapping(const struct arena *arena)
{
    return __atomic_load_n(&arena->mapping, __ATOMIC_RELAXED);
}

static inline void arena_set_mapping(struct arena *arena, size_t size)
{
    __atomic_store_n(&arena->mapping, size, __ATOMIC_RELAXED);
}

/* Makes an arena with all slots claimed: memory, a struct, entries in the pagemap; or nothing and ENOMEM. */
struct arena *arena_create(size_t size, size_t alignment);

/* arena_create in two steps: memory for several arenas, and one arena of it. */
char *arena_map(size_t size, size_t alignment);
struct arena *arena_create_at(char *base, size_t size);

/* Unmaps a mapping, or an arena of slots that the caller has claimed as a whole. The caller passes the gate.
 * false: the OS did not unmap the arena, and it is as it was. */
bool arena_destroy(struct arena *arena, size_t size);

/* Gives back the struct of an arena whose memory is another's, or nobody's, and not in the pagemap. */
void arena_forget(struct arena *arena, size_t size);

/* Returns the next arena whose bit is set in a word of its group. NULL begins, and ends. */
enum arena_word { ARENA_FREE, ARENA_DIRTY };
struct arena *arena_next_with(enum arena_word word, const struct arena *after);

/* --- sums ---------------------------------------------------------------------------------------- */

static inline void arena_count_held(size_t add, size_t sub)
{
    size_t held = atomic_fetch_add_explicit(&arenas.held, add - sub, memory_order_relaxed) + add - sub;
    size_t peak = atomic_load_explicit(&arenas.peak, memory_order_relaxed);
    if (sub > add) atomic_fetch_add_explicit(&arenas.returned, sub - add, memory_order_relaxed);
    while (held > peak && held < SIZE_MAX / 2 && /* below zero for a moment: another thread subtracts first */
           !atomic_compare_exchange_weak_explicit(&arenas.peak, &peak, held, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static inline void arena_count_mapped(size_t add, size_t sub)
{
    atomic_fetch_add_explicit(&arenas.mapped, add - sub, memory_order_relaxed);
}

static inline size_t arena_unused(void)
{
    return atomic_load_explicit(&arenas.dirty_slots, memory_order_relaxed) * SUPERBLOCK;
}

/* --- claims --------------------------------------------------------------------------------------- */

/* Claims the slots of a mask, if all are free. */
static inline bool arena_claim(struct arena *arena, uint64_t mask)
{
    uint64_t used = atomic_load_explicit(&arena->used, memory_order_relaxed);
    do
        if ((used & mask) != 0) return false;
    while (!atomic_compare_exchange_weak(&arena->used, &used, used | mask));
    return true;
}

/* Makes claimed slots free, dirty if marked in arena->dirty. Their descriptors must be those of free ones. */
void arena_release(struct arena *arena, uint64_t mask);

/* Makes claimed slots from slot i on an object of n slots, or a superblock. */
struct superblock *arena_slot_set(struct arena *arena, unsigned i, enum superblock_kind kind, unsigned n);

static inline uint64_t arena_free_in(const struct arena *arena, enum arena_word word)
{
    uint64_t free = ~atomic_load(&arena->used);
    return word == ARENA_DIRTY ? free & atomic_load(&arena->dirty) : free;
}

/* Clears the arena's bit in a word of its group if it has no such slot any more. */
void arena_look_for(struct arena *arena, enum arena_word word);

#endif
