/* SPDX-License-Identifier: Apache-2.0 */
/* arena_internal.h: arenas from within, for the parts of them.
 *
 * arena_table.c has structs and where they are found, huge_pages.c who has these, arena_slots.c slots,
 * mapping_cache.c mappings, and reclaim.c, above all others, what goes back to the OS and the limit on
 * memory. Slots and mappings cannot ask for memory to go back, which is made of both: they say how much they
 * lack, and reclaim.c makes room and has them try again.
 *
 *     held = used slots + dirty slots + mappings, kept ones included, in bytes
 *     unused = dirty slots + kept mappings
 *
 * Groups of 64 arenas say in a few words where it is worth looking:
 *
 *     group     | free | dirty | spare | made |  arenas[64]  | next -> ...
 *                  a bit of each word for each arena
 *
 * `free` and `dirty` are hints: a bit is set after slots became free, and who finds nothing behind a bit
 * clears it and looks again. So a bit that should be set is, once all is unowned. `spare` is claimed with the
 * struct.
 */
#ifndef ARENA_INTERNAL_H
#define ARENA_INTERNAL_H

#include "arena/arena.h"
#include "base/lock.h"

enum {
    ARENA_LOOK_FOR_LIMIT = 16 * 1024 * 1024, /* bytes held; before, no limit matters */
    ARENA_MAYBE_SPARSE = 4,                  /* slots of an object that may be touched here and there only */
    ARENA_SPARE_PEAK = 1024 * 1024,          /* bytes of an object for which unused memory goes back */
    ARENA_SPARE_ADDRESSES =
        32 * 1024 * 1024, /* bytes: so many, and as many as are held, may be mapped in vain */
    ARENA_TOGETHER = 16,  /* at most: made at a time */
    ARENA_KEPT = 16,      /* mappings without an object */
    GROUP_ARENAS = 64,
};

struct arena_group {
    _Atomic uint64_t free;  /* arenas that may have a free slot */
    _Atomic uint64_t dirty; /* ... a dirty one */
    _Atomic uint64_t spare; /* structs without memory */
    _Atomic uint64_t made;  /* structs there are, or are being made */
    _Atomic(struct arena *) arenas[GROUP_ARENAS];
    _Atomic(struct arena_group *) next;
};

/* All that several threads change, each word by itself; sums are right when all is unowned. */
struct arenas {
    struct gate gate;
    struct arena_group groups;                /* the first */
    _Atomic(struct arena *) all;              /* along ->next */
    _Atomic(struct arena *) latest;           /* the arena in which a slot became free last */
    _Atomic(struct arena *) kept[ARENA_KEPT]; /* mappings without an object */
    _Atomic size_t kept_bytes;
    _Atomic bool shared;   /* by several threads */
    _Atomic bool creating; /* a thread makes arenas */
    _Atomic size_t held, peak;
    _Atomic size_t mapped; /* bytes of addresses */
    _Atomic size_t spared; /* bytes that went back for a peak not to rise */
    _Atomic size_t near;   /* bytes held that are near the limit on memory, or enough to look for one */
    _Atomic bool limit_is_known;
    _Atomic size_t dirty_slots;
    _Atomic uint64_t purged_at;
};

extern HIDDEN struct arenas arenas;

static inline uint64_t arena_slot_mask(unsigned first, unsigned n)
{
    return (n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX) << first;
}

/* Another thread may have freed it since `now`. */
static inline bool arena_is_as_old(uint64_t freed_at, uint64_t now, uint64_t min_age)
{
    return min_age == 0 || (freed_at <= now && now - freed_at >= min_age);
}

static inline uint64_t arena_bit(const struct arena *arena) { return (uint64_t)1 << arena->index; }

/* --- arena_table.c ---------------------------------------------------------------------------- */

/* Memory, a struct and the map's entries, or nothing of them and ENOMEM; no slot is to be had of it yet. */
struct arena *arena_create(size_t size, size_t alignment);

/* The same in two steps: memory for several, and one of them. */
char *arena_map(size_t size, size_t alignment);
struct arena *arena_create_at(char *base, size_t size);

/* Unmaps one of which all is the caller's, who passes the gate. */
void arena_destroy(struct arena *arena, size_t size);

/* The same of slots that may hold memory still; false: it is as it was, since the OS did not unmap it. */
bool arena_destroy_dirty(struct arena *arena);

/* The arenas whose bit in a word of their groups is set, one after the other: NULL begins and ends. */
enum arena_word { ARENA_FREE, ARENA_DIRTY };
struct arena *arena_next_with(enum arena_word word, const struct arena *after);

/* Slots have become free, or dirty; none seems to be any more, which `still` then looks at once more. */
void arena_hint_set(_Atomic uint64_t *word, const struct arena *arena);
void arena_hint_clear(_Atomic uint64_t *word, const struct arena *arena, bool (*still)(const struct arena *));

/* --- arena_slots.c ---------------------------------------------------------------------------------- */

static inline void arena_count_held(size_t add, size_t sub)
{
    size_t held = atomic_fetch_add_explicit(&arenas.held, add - sub, memory_order_relaxed) + add - sub;
    size_t peak = atomic_load_explicit(&arenas.peak, memory_order_relaxed);
    while (held > peak && held < SIZE_MAX / 2 && /* less than nothing for a moment: another subtracts first */
           !atomic_compare_exchange_weak_explicit(&arenas.peak, &peak, held, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static inline void arena_count_mapped(size_t add, size_t sub)
{
    atomic_fetch_add_explicit(&arenas.mapped, add - sub, memory_order_relaxed);
}

static inline bool arena_is_near(size_t more)
{
    size_t held = atomic_load_explicit(&arenas.held, memory_order_relaxed);
    size_t near = atomic_load_explicit(&arenas.near, memory_order_relaxed);
    return more != 0 && (held >= near || more > near - held);
}

static inline size_t arena_unused(void)
{
    return atomic_load_explicit(&arenas.dirty_slots, memory_order_relaxed) * SUPERBLOCK +
           atomic_load_explicit(&arenas.kept_bytes, memory_order_relaxed);
}

static inline bool arena_needs_room(size_t more)
{
    size_t held = atomic_load_explicit(&arenas.held, memory_order_relaxed);
    size_t peak = atomic_load_explicit(&arenas.peak, memory_order_relaxed);
    return arena_is_near(more) || (more >= ARENA_SPARE_PEAK && held + more > peak && arena_unused() != 0);
}

/* Before `more` bytes more are held. `room` is how many of them reclaim.c has agreed to; where that does not
 * do, it becomes how many it is to be asked for (arena_take and others ask, and try again). */
static inline bool arena_has_room(size_t more, size_t *room)
{
    if (LIKELY(!arena_needs_room(more)) || more <= *room) return true;
    *room = more;
    return false;
}

/* Claims the slots of a mask, if all are free. */
static inline bool arena_claim(struct arena *arena, uint64_t mask)
{
    uint64_t used = atomic_load_explicit(&arena->used, memory_order_relaxed);
    do
        if ((used & mask) != 0) return false;
    while (!atomic_compare_exchange_weak(&arena->used, &used, used | mask));
    return true;
}

/* Makes claimed slots free, dirty ones if they are marked so. Their descriptors are those of free slots. */
void arena_release(struct arena *arena, uint64_t mask);

/* Clears the hint of an arena in which nothing is dirty any more. */
void arena_look_for_dirty(struct arena *arena);

/* Makes n claimed slots from i on an object, or a superblock. */
struct superblock *arena_slot_set(struct arena *arena, unsigned i, unsigned n, enum superblock_kind kind);

/* As arena_take and arena_resize, but for what has room alone. */
struct superblock *arena_try_take(unsigned n, unsigned alignment, enum superblock_kind kind, bool sparse,
                                  bool *clean, size_t *room);
bool arena_try_resize(struct superblock *first, unsigned n, int more, size_t *room);

/* --- mapping_cache.c ---------------------------------------------------------------------------- */

/* Unmaps what has been kept that long; the bytes. And the oldest of it, until so much is gone. */
size_t arena_drop_kept_older(uint64_t now, uint64_t min_age);
size_t arena_drop_kept(size_t bytes);

/* As arena_map_large and arena_remap_large, but for what has room alone. */
struct arena *arena_try_map(size_t size, size_t alignment, enum superblock_kind kind, bool *clean,
                            size_t *room);
bool arena_try_remap(struct arena *arena, size_t size, bool may_move, size_t *room);

#endif
