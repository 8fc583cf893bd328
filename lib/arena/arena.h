/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h: where superblocks and spans lie.
 *
 * An arena is 4 MiB of addresses at a multiple of 4 MiB, in 64 slots of 64 KiB. Its descriptors lie
 * apart, in metadata. A superblock takes one slot, a span a run of them. A large object beyond 4 MiB
 * has a mapping of its own and an arena struct for it, with no slots in use but the first.
 *
 *     address space   ....|   arena   |....|  mapping of 9 MiB        |....
 *     map (4 MiB each)  0 |     *     | 0  |    *   |    *   |    *   | 0
 *                               |               \        |       /
 *                        struct arena             struct arena
 *                        slots[64], used, dirty   slots[0], mapping
 *
 * The map (pagemap.h) says which arena an address belongs to. Structs of arenas are never unmapped, only used
 * again, so that a stale pointer is looked up safely too.
 *
 * Vocabulary: a slot is used, or free; a free slot is dirty when it may hold memory (and old
 * contents), else clean: the OS has nothing behind it and it reads as zero.
 *
 * There is no lock. A thread claims slots with one compare-and-swap on `used`. What it has claimed is its
 * own: it may hand the slots out, give their memory back to the OS, or, with all 64 of them, unmap the arena.
 * So a thread that is preempted, or waits for the kernel, holds up nobody. Only what moves or unmaps memory
 * passes a gate (lock.h), which fork and reports close for a while.
 */
#ifndef ARENA_H
#define ARENA_H

#include "arena/pagemap.h"
#include "arena/superblock.h"
#include "base/base.h"
#include "base/list.h"

enum {
    ARENA = 1 << PAGEMAP_SHIFT, /* bytes */
    ARENA_SLOTS = ARENA / SUPERBLOCK,
};

_Static_assert(ARENA_SLOTS == 64, "the masks of slots are one word");

struct arena {
    struct superblock slots[ARENA_SLOTS];
    char *base;                /* NULL: no memory */
    _Atomic uint64_t used;     /* a bit per slot: claimed. All of them where there are no slots to be had */
    _Atomic uint64_t heads;    /* of the used ones, the first of each superblock and span */
    _Atomic uint64_t dirty;    /* of the free ones: set before a slot is free, cleared after it is claimed */
    _Atomic uint64_t freed_at; /* pages_clock of the latest slot that became free */
    _Atomic uint8_t longest_free;  /* no run of free slots is longer, */
    _Atomic uint8_t longest_dirty; /* and none of dirty ones: else ARENA_SLOTS */
    uint8_t index;                 /* its bit in its group's words */
    _Atomic bool huge;             /* the kernel may put huge pages behind it */
    _Atomic bool sparse; /* none are there because it was made for superblocks that leave pages untouched */
    size_t mapping;      /* bytes, for a large object; 0: an arena of slots */
    struct arena_group *group;
    struct arena *next; /* all arenas that ever were */
};

/* A guess at the descriptor, for the fast path of free: the slot's in the arena that a pointer of the
 * same 4 MiB modulo 4 GiB was last seen in. It is a descriptor always, but the pointer's only if
 * superblock_starts_at says so; what it says no to is looked up in the map. Offsets are from `none`. */
enum { ARENA_GUESSES = 1024 };
struct arena_guesses {
    struct arena none;
    _Atomic intptr_t offset[ARENA_GUESSES];
};
extern HIDDEN struct arena_guesses arena_guesses;

static ALWAYS_INLINE struct superblock *arena_guess(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    uintptr_t slot = address >> (SUPERBLOCK_SHIFT - 6) & (ARENA_SLOTS - 1) << 6; /* of 64 bytes each */
    intptr_t offset = atomic_load_explicit(
        &arena_guesses.offset[address >> PAGEMAP_SHIFT & (ARENA_GUESSES - 1)], memory_order_relaxed);
    return (struct superblock *)((char *)&arena_guesses.none + offset + slot);
}

static inline void arena_learn(struct arena *arena, const void *pointer)
{
    atomic_store_explicit(&arena_guesses.offset[(uintptr_t)pointer >> PAGEMAP_SHIFT & (ARENA_GUESSES - 1)],
                          (char *)arena - (char *)&arena_guesses.none, memory_order_relaxed);
}

/* The descriptor of the slot; for a mapping, one that has no blocks. */
static ALWAYS_INLINE struct superblock *arena_slot(struct arena *arena, const void *pointer)
{
    return &arena->slots[((uintptr_t)pointer >> SUPERBLOCK_SHIFT) & (ARENA_SLOTS - 1)];
}

/* Takes n adjacent slots (1 to 64) whose first is at a multiple of `alignment` slots: the first
 * one's descriptor, its kind set and its origin; the further ones are SLOT_FREE. *clean: all of it reads as
 * zero. NULL: no memory, errno ENOMEM. */
struct superblock *arena_take(unsigned n, unsigned alignment, enum superblock_kind kind, bool *clean);

/* A slot for a superblock; sparse: much of it may never be touched. */
struct superblock *arena_take_slot(enum superblock_kind kind, bool sparse, bool *clean);

/* For a slot that reads as zero. If a huge page comes with its first byte, and slowly, the arena gets no more
 * of them, nor do those that are made next (huge_pages.h). */
void arena_touch(struct superblock *sb);

/* For a superblock of which little may be used: what its slot's memory holds goes back to the OS, until it is
 * touched. Not where there may be huge pages. */
void arena_refresh(struct superblock *sb);

/* Gives back n slots. No system call. */
void arena_give(struct superblock *first, unsigned n);

/* Takes `more` free slots that follow a span of n, or, less than 0, gives back its last ones. */
bool arena_resize(struct superblock *first, unsigned n, int more);

/* The slots of a span. */
unsigned arena_span(const struct superblock *first);

/* The first slot of the span or superblock that a pointer lies in, else its own slot; no mappings. */
static inline struct superblock *arena_head(struct arena *arena, const void *pointer)
{
    unsigned i = (uintptr_t)pointer >> SUPERBLOCK_SHIFT & (ARENA_SLOTS - 1);
    uint64_t used = atomic_load_explicit(&arena->used, memory_order_relaxed);
    uint64_t heads = atomic_load_explicit(&arena->heads, memory_order_relaxed) & (((uint64_t)2 << i) - 1);
    bool is_in_span = used >> i & 1 && heads != 0;
    return &arena->slots[is_in_span ? 63 - (unsigned)__builtin_clzll(heads) : i];
}

/* The address of a slot's memory. */
static inline char *slot_start(const struct superblock *slot) { return slot->origin + BLOCK_BIAS; }

/* A mapping of its own for size bytes, or up to a quarter more, at a multiple of alignment. *clean: all of it
 * reads as zero. NULL and ENOMEM. What is given back is kept for a while, as dirty slots are. */
struct arena *arena_map_large(size_t size, size_t alignment, enum superblock_kind kind, bool *clean);
void arena_unmap_large(struct arena *arena);

/* Resizes a mapping, moving it if may_move; its start may be another afterwards. false: it is as it was. */
bool arena_remap_large(struct arena *arena, size_t size, bool may_move);

/* Gives dirty slots that have been free for min_age ms back to the OS, and unmaps arenas that have no used
 * slot, all of them when min_age is 0. The bytes that were dirty. */
size_t arena_purge(uint64_t min_age);

/* For a thread that does so: sleeps until there is unused memory. */
void arena_wait_for_unused(void);

/* The same with the age of options.purge_ms, at most once in that time; and wakes the thread that waits. For
 * the ends of slow paths, with no lock held: it may take the kernel's time. */
void arena_purge_if_due(void);

/* All processes of the group together may have this much, which is read of the cgroup by itself; for tests.
 * Where seven eighths of it would be passed, unused memory goes back first; with memory_limit=refuse the
 * answer is then no. */
void arena_limit(size_t bytes);

/* Would so many bytes more, not 0, pass that? No lock. */
bool arena_nears_limit(size_t more);

/* Between the two nothing is unmapped, moved or purged. Threads that want to wait. */
void arena_freeze(void);
void arena_thaw(void);

/* Several threads allocate from now on. */
void arena_begin_sharing(void);

/* Is there a slot to be had that has memory already? */
bool arena_has_dirty(void);

/* Bytes in use or dirty now, the most there were, and those of now that nobody uses. */
struct arena_held {
    size_t now, peak, unused;
};
struct arena_held arena_held(void);

/* The first of all arenas and mappings, to walk along ->next. What holds nothing has slots of SLOT_FREE. */
struct arena *arena_first(void);

void arena_fork_prepare(void);
void arena_fork_parent(void);
void arena_fork_child(void);

#endif
