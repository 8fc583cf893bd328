/* arena_state.h: arenas from within, for the parts of them.   (floor 2)
 *
 * arena_slots.c has structs and slots, arena_large.c mappings, arena_purge.c what goes back to the OS, the
 * limit on memory and huge pages.
 *
 *     held = used slots + dirty slots + mappings, kept ones included, in bytes
 *     unused = dirty slots + kept mappings
 *
 * All is under the lock but for what is read without, with atomic loads: all, near, held, purged_at.
 */
#ifndef ARENA_STATE_H
#define ARENA_STATE_H

#include "arena.h"
#include "lock.h"

enum {
    ARENA_LOOK_FOR_LIMIT = 16 * 1024 * 1024, /* bytes held; before, no limit matters */
    ARENA_MAYBE_SPARSE = 4                   /* slots of an object that may be touched here and there only */
};

struct arenas {
    struct lock lock;
    struct list partial; /* arenas with a free slot, the latest freed first */
    struct list spare;   /* structs without memory */
    struct list kept;    /* mappings without an object, the latest freed first */
    size_t kept_bytes;
    _Atomic(struct arena *) all;
    size_t held, peak;
    size_t spared; /* bytes that went back for a peak not to rise */
    size_t near; /* bytes held that are near the limit on memory, or enough to look for one */
    _Atomic bool limit_is_known;
    size_t dirty_slots;
    uint64_t purged_at;
};

extern HIDDEN struct arenas arenas;

static inline uint64_t arena_slot_mask(unsigned first, unsigned n)
{
    return (n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX) << first;
}

/* --- arena_slots.c ---------------------------------------------------------------------------------- */

void arena_count_held(size_t add, size_t sub);

/* Memory, a struct and the map's entries, or nothing of them; and all of them gone. */
struct arena *arena_create(size_t size, size_t alignment);
void arena_destroy(struct arena *arena, size_t size);

/* Makes n slots from i on an object, or a superblock. */
struct superblock *arena_slot_set(struct arena *arena, unsigned i, unsigned n, enum superblock_kind kind);

/* --- arena_large.c ---------------------------------------------------------------------------- */

/* Unmaps what has been kept that long; the bytes. And the oldest of it, until so much is gone. */
size_t arena_drop_kept_older(uint64_t now, uint64_t min_age);
void arena_drop_kept(size_t bytes);

/* --- arena_purge.c ---------------------------------------------------------------------------- */

/* Something has become unused. */
void arena_tell_of_unused(void);

/* When `more` bytes would come near the limit, or be more than was ever held though some is unused: what
 * nobody uses goes back, in the second case as much as is needed. May they be had? If not, errno is ENOMEM.
 * An arena that has no used slot may be unmapped. */
bool arena_make_room(size_t more);

/* With the lock or without. */
static inline bool arena_is_near(size_t more)
{
    size_t held = __atomic_load_n(&arenas.held, __ATOMIC_RELAXED);
    size_t near = __atomic_load_n(&arenas.near, __ATOMIC_RELAXED);
    return more != 0 && (held >= near || more > near - held);
}

static inline size_t arena_unused(void) { return arenas.dirty_slots * SUPERBLOCK + arenas.kept_bytes; }

static inline bool arena_needs_room(size_t more)
{
    return arena_is_near(more) || (more != 0 && arenas.held + more > arenas.peak && arena_unused() != 0);
}

static inline bool arena_may_have(size_t more)
{
    return LIKELY(!arena_needs_room(more)) || arena_make_room(more);
}

/* Tells the kernel about huge pages, when an arena was made, for an object of n slots first, or a mapping;
 * and that there are to be no more. */
void arena_advise(struct arena *arena, unsigned n, bool sparse);
void arena_advise_mapping(struct arena *arena, size_t size);
void arena_no_huge_pages(struct arena *arena);

#endif
