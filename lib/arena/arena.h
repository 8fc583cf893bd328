/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h: the addresses of superblocks, spans and mappings.
 *
 * An arena is 4 MiB of addresses at a multiple of 4 MiB, in 64 slots of 64 KiB. Its descriptors lie apart, in
 * metadata. A superblock has one to sixteen slots. A span is a run of slots for one object, and may go on
 * in the next arenas: it has up to 32 MiB. A larger object, or one that has grown above 4 MiB while no slots
 * with memory are free, has a mapping of its own, and a struct arena of which only the first slot is in use.
 *
 *     address space   ....|   arena   |   arena   |....|  mapping of 36 MiB        |....
 *                         | superblock, ... span ...|  |                           |
 *     map (4 MiB each)  0 |     *     |     *     | 0  |  *  |  *  |   ...   |  *  | 0
 *                               |           |             \     |           /
 *                        struct arena  struct arena        struct arena
 *                        slots[64], used, dirty            slots[0], mapping
 *
 * The pagemap says which arena an address belongs to. Structs of arenas are never unmapped, only used again,
 * so that the lookup of a stale pointer is safe too.
 *
 * Vocabulary: a slot is used or free. A free slot is dirty when it may hold memory (and old contents). Else
 * it is clean: the OS has nothing behind it and it reads as zero.
 *
 * There is no lock. A thread claims slots with one compare-and-swap on `used`. Claimed slots belong to it: it
 * may hand them out, give their memory back to the OS, or, with all 64 of them, unmap the arena. Only code
 * that moves or unmaps memory passes a gate (lock.h), which fork and reports close for a while.
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
    ARENA_SPAN_MAX = 8 * ARENA,                 /* bytes of the largest span */
    ARENA_STUBS = SUPERBLOCK / CLASS_WIDE_SIZE, /* for a slot: a wide superblock has no more blocks */
    ARENA_CHUNKS_FROM = 8, /* a page of the map of chunks is for eight slots: so few chunks write to one */
};

/* Of a superblock that came to its heap partly used (false_sharing.h). A bit for each block, by its place. */
struct sharing_notes {
    uint64_t foreign[SUPERBLOCK_BLOCKS / 64], waiting[SUPERBLOCK_BLOCKS / 64];
    unsigned foreign_blocks, waiting_blocks;
};

_Static_assert(ARENA_SLOTS == 64, "the masks of slots are one word");

struct arena {
    char *base;                /* NULL: no memory */
    _Atomic uint64_t used;     /* a bit per slot: claimed. All are set in a struct that has no free slots */
    _Atomic uint64_t heads;    /* of the used slots, the first of each superblock and span */
    _Atomic uint64_t dirty;    /* of the free slots: set before slots become free, cleared after a claim */
    _Atomic uint64_t freed_at; /* pages_clock of the latest slot that became free */
    uint8_t index;             /* number of its bit in its group's words */
    _Atomic bool huge;         /* the kernel may put huge pages behind it */
    _Atomic bool sparse;       /* it has none, since it was made for superblocks that leave pages untouched */
    size_t mapping;            /* bytes, for a large object; 0: an arena of slots */
    struct arena_group *group;
    struct arena *next; /* the list of all structs, which only grows */
    /* last: a small process touches few of them */
    _Alignas(64) struct superblock slots[ARENA_SLOTS];
    struct stub stubs[ARENA_SLOTS * ARENA_STUBS];
    struct sharing_notes notes[ARENA_SLOTS];
};

/* Guesses at descriptors, for the fast path of free. The guess for a pointer is its slot in the arena where
 * a pointer of the same 4 MiB modulo 4 GiB was last seen: always a descriptor, but the pointer's only if
 * superblock_starts_at says so. Otherwise free looks into the pagemap. Offsets are from `none`. */
enum { ARENA_GUESSES = 1 << (32 - PAGEMAP_SHIFT) };
struct arena_guesses {
    struct superblock none[ARENA_SLOTS];
    _Atomic intptr_t offset[ARENA_GUESSES];
};
extern HIDDEN struct arena_guesses arena_guesses;

static ALWAYS_INLINE struct superblock *arena_guess(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    uintptr_t slot = address >> (SUPERBLOCK_SHIFT - 7) & (ARENA_SLOTS - 1) << 7; /* of 128 bytes each */
    intptr_t offset =
        atomic_load_explicit(&arena_guesses.offset[(uint32_t)address >> PAGEMAP_SHIFT], memory_order_relaxed);
    return (struct superblock *)((char *)arena_guesses.none + offset + slot);
}

static inline void arena_learn(struct arena *arena, const void *pointer)
{
    atomic_store_explicit(&arena_guesses.offset[(uint32_t)(uintptr_t)pointer >> PAGEMAP_SHIFT],
                          (char *)arena->slots - (char *)arena_guesses.none, memory_order_relaxed);
}

/* Returns the descriptor of the slot; for a mapping, one that has no blocks. */
static ALWAYS_INLINE struct superblock *arena_slot(struct arena *arena, const void *pointer)
{
    return &arena->slots[((uintptr_t)pointer >> SUPERBLOCK_SHIFT) & (ARENA_SLOTS - 1)];
}

/* What slots are taken for: a superblock; one of which much may never be touched; one of chunks, which is
 * such a one, from slot ARENA_CHUNKS_FROM on if that is free; a large object, and one that grows. */
enum arena_use { ARENA_PLAIN, ARENA_SPARSE, ARENA_CHUNKS, ARENA_SPAN, ARENA_GROWS };

/* Takes n adjacent slots of one arena for a superblock. Returns the first slot's descriptor with its kind
 * and origin set; the further slots are SLOT_FREE. *clean: all reads as zero. NULL: no memory (ENOMEM). */
struct superblock *arena_take(unsigned n, enum superblock_kind kind, enum arena_use use, bool *clean);

/* The same for a large object, SPAN or GROWS: up to ARENA_SPAN_MAX, whose first slot is at a multiple of
 * `alignment` slots (1 to 64), and which may go on in the arenas behind. */
struct superblock *arena_take_span(unsigned n, unsigned alignment, enum superblock_kind kind,
                                   enum arena_use use, bool *clean);

/* Touches a slot that reads as zero. If that brings a huge page, and slowly, the arena gets no more huge
 * pages, nor do the next arenas (huge_pages.h). */
void arena_touch(struct superblock *sb);

/* Gives the memory of a superblock's n slots back to the OS, until it is touched: for a superblock of which
 * little may be used. true: the slots read as zero. false: there may be huge pages, or the OS refused. */
bool arena_refresh(struct superblock *sb, unsigned n);

/* Give back a superblock's n slots, or a span. No system call. arena_give_lifted: a span whose memory is
 * elsewhere, so that its slots are clean. */
void arena_give(struct superblock *sb, unsigned n);
void arena_give_span(struct superblock *first);
void arena_give_lifted(struct superblock *first);

/* Takes `more` free slots behind a span of n slots. If `more` is less than 0, gives back the span's last
 * -more slots. false: the span is as it was. */
bool arena_resize(struct superblock *first, unsigned n, int more);

static inline unsigned arena_span(const struct superblock *first)
{
    return (unsigned)__atomic_load_n(&first->word, __ATOMIC_RELAXED);
}

/* The first slot of a span that began in an arena before, and has the pointer; else the pointer's slot. */
struct superblock *arena_head_before(struct arena *arena, const void *pointer);

/* Returns the last slot up to the pointer's own where a span or superblock begins, or NULL. */
static inline struct superblock *arena_head_here(struct arena *arena, const void *pointer)
{
    unsigned i = (uintptr_t)pointer >> SUPERBLOCK_SHIFT & (ARENA_SLOTS - 1);
    uint64_t heads = atomic_load_explicit(&arena->heads, memory_order_relaxed) << (ARENA_SLOTS - 1 - i);
    return heads != 0 ? &arena->slots[i - (unsigned)__builtin_clzll(heads)] : NULL;
}

/* The first slot of the span or superblock that a pointer lies in, else its own slot. No mapping. */
static inline struct superblock *arena_head(struct arena *arena, const void *pointer)
{
    unsigned i = (uintptr_t)pointer >> SUPERBLOCK_SHIFT & (ARENA_SLOTS - 1);
    if ((atomic_load_explicit(&arena->used, memory_order_relaxed) >> i & 1) == 0) return &arena->slots[i];
    struct superblock *head = arena_head_here(arena, pointer);
    return head != NULL ? head : arena_head_before(arena, pointer);
}

static inline char *slot_start(const struct superblock *slot)
{
    bool is_wide = __atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) == SLOT_WIDE; /* first: it is set last */
    char *first = slot->origin + BLOCK_BIAS;
    return UNLIKELY(is_wide) ? ((struct stub *)(void *)first)->block : first;
}

/* Returns the wide superblock that a pointer may lie in, or NULL. Stale pointers come here too. */
static inline struct superblock *arena_wide(struct arena *arena, const void *pointer)
{
    struct superblock *sb = arena_head_here(arena, pointer);
    return sb != NULL && sb->kind == SLOT_WIDE ? sb : NULL;
}

/* Returns the stub of the block of a wide superblock that starts at a pointer, or NULL. For a stale pointer
 * the class may be another one by now. */
static inline void *arena_stub_of(struct arena *arena, const struct superblock *sb, const void *pointer)
{
    unsigned wide = *(const volatile uint8_t *)&sb->class - (unsigned)CLASS_WIDE;
    size_t i = (size_t)(sb - arena->slots), offset = ((uintptr_t)pointer & (ARENA - 1)) - i * SUPERBLOCK;
    if (wide >= CLASS_CHUNK - CLASS_WIDE || offset % LINE != 0 || i >= ARENA_SLOTS) return NULL;
    uint32_t inverse = sizeclass_wide_inverse[wide];
    uint64_t index = (uint64_t)(offset / LINE) * inverse;
    if ((uint32_t)index >= inverse || index >> 32 >= sizeclasses[CLASS_WIDE + wide].capacity) return NULL;
    return &arena->stubs[i * ARENA_STUBS + (index >> 32)];
}

/* Returns what stands for the program's block that starts at a pointer: the stub of a wide block, of any
 * other the block itself; NULL if none starts there. The superblock is arena_head's. */
static inline void *arena_stub(struct arena *arena, const struct superblock *sb, const void *pointer)
{
    if (sb->kind == SLOT_WIDE) return arena_stub_of(arena, sb, pointer);
    return superblock_starts_at(sb, pointer) ? (void *)(uintptr_t)pointer : NULL;
}

/* Maps an object of size bytes at a multiple of alignment. *clean: it reads as zero. NULL and ENOMEM. */
struct arena *arena_map_large(size_t size, size_t alignment, enum superblock_kind kind, bool *clean);

/* Makes a mapping of size bytes of which a span is the beginning: its memory moves, and the span
 * is given back. NULL: the OS refused, no memory, or no rseq; the span is as it was. */
struct arena *arena_lift_span(struct superblock *first, size_t size);

/* Ends a mapping. One of up to ARENA_SPAN_MAX bytes becomes arenas with dirty slots. */
void arena_unmap_large(struct arena *arena);

/* Resizes a mapping. If may_move, its start may be another one afterwards. false: it is as it was. */
bool arena_remap_large(struct arena *arena, size_t size, bool may_move);

/* Gives dirty slots that have been free for min_age ms back to the OS, and unmaps arenas that have no used
 * slot, all of them when min_age is 0. Returns the bytes that were dirty. */
size_t arena_purge(uint64_t min_age);

/* When memory was purged last, by pages_clock. */
uint64_t arena_purged_at(void);

/* Purges with the age of options.purge_ms, at most once in that time, and wakes the thread that waits in
 * arena_wait_for_unused. For the ends of slow paths, with no lock held, since it may make system calls. */
void arena_purge_if_due(void);

/* The same after a free. If much is unused now beside what is used, it gives unused memory back at once, but
 * for what the program is known to want again (reclaim.c has the rule). */
void arena_purge_after_free(void);

/* Gives unused memory back at once while there is more than `keep` bytes of it, but at most `most`. */
void arena_purge_unused(size_t keep, size_t most);

/* Sets the limit on the memory of all processes of the group together, for tests; otherwise the library reads
 * it from the control group. Before the bytes held pass seven eighths of the limit, unused memory goes back.
 * With memory_limit=refuse, allocations that would still pass that mark fail. */
void arena_limit(size_t bytes);

/* Returns true if that number of bytes more, not 0, would pass seven eighths of the limit. Takes no lock. */
bool arena_nears_limit(size_t more);

/* The name of arenas in /proc/PID/maps (pages_name). An arena may have slots for malloc and for chunks; where
 * malloc is another's, it is that of pools. */
extern HIDDEN const char *arena_name;

/* Between the two calls no memory is unmapped, moved or purged; threads that want to do so wait. */
void arena_freeze(void);
void arena_thaw(void);

/* Says that several threads allocate from now on. */
void arena_begin_sharing(void);

/* Returns true if free slots have this number of bytes of memory already. */
bool arena_has_unused(size_t bytes);

/* Bytes in use or dirty: now, and at most; of dirty slots; and all that ever went back to the OS. */
struct arena_held {
    size_t now, peak, unused, returned;
};
struct arena_held arena_held(void);

/* The first of all arenas and mappings, linked by `next`. Structs without memory have free slots only. */
struct arena *arena_first(void);

void arena_fork_prepare(void);
void arena_fork_parent(void);
void arena_fork_child(void);

#endif
