/* SPDX-License-Identifier: Apache-2.0 */
/* heap_table.h: the heaps, one for each id, their rows and batches, and their locks.
 *
 * a is the number of slots of all superblocks in bins, in the row, and in `empty`. a - u, as recorded, is the
 * sum over the superblocks in bins, each its group times its slots, and 8 for each slot in `empty`; an active
 * superblock counts as full (heap_is_valid). The lock covers all fields that are not atomic, except the
 * counts.
 *
 * Only one thread at a time runs with a heap's id. So if a thread finds its heap's lock taken, the holder is
 * a stopped thread, and stays stopped for milliseconds on a busy machine. No thread waits for it. A free
 * queues the superblock that is due for another group and sets `deferred`, which the holder checks. A
 * malloc gets a superblock from the global heap or the arenas, and puts it into the row by a section, without
 * a lock; the superblock that was there goes onto the list of displaced ones, until the holder files it. A
 * heap may get HEAP_DETOURS superblocks in this way; then its threads do wait.
 *
 * A thread that takes active superblocks from the heap of another id sets `visited` first and runs a fence.
 * From then on the row changes under the lock only.
 *
 * A superblock that is on no list and in no row is in transit: one thread has it, and that thread has entered
 * the gate heap_transit. fork closes the gate, so that no child loses a superblock.
 */
#ifndef HEAP_TABLE_H
#define HEAP_TABLE_H

#include "arena/arena.h"
#include "base/lock.h"
#include "heap/bin.h"
#include "heap/heap.h"
#include "heap/heap_path.h"
#include "os/rseq.h"

/* The entries are distances of descriptors from HEAP_ROW_ORIGIN; 0: no superblock. */
struct heap_row {
    uint64_t active[CLASSES]; /* by class */
};

/* The batches of an id, by class: of small classes what it freed of other heaps, of wide ones what it freed
 * last. A word: the first block's address : 48 | closed : 1 | blocks : 15. A block in a batch looks free, as
 * one on a superblock's free list does; its second eight bytes have the address of the next block, disguised.
 * A stub's have the address of its block, so its first eight bytes have the next stub's: they may be a free
 * one's by block_may_be_free, and are not 0. */
struct heap_batches {
    uint64_t of[CLASSES];
};
extern HIDDEN struct heap_batches heap_batches[IDS_MAX];

extern HIDDEN struct heap_row heap_rows[IDS_MAX];

/* On x86-64 this is the row of id 0. There is no class 0, so its first word is always 0. So pop may take an
 * entry of 0 for a descriptor too: its word has no free block, and pop needs no test of its own. */
#ifdef __x86_64__
#define HEAP_ROW_ORIGIN ((uintptr_t)heap_rows)
#else
#define HEAP_ROW_ORIGIN ((uintptr_t)0)
#endif

static inline uint64_t heap_entry(const struct superblock *sb)
{
    return sb != NULL ? (uintptr_t)sb - HEAP_ROW_ORIGIN : 0;
}

static inline struct superblock *heap_entry_superblock(uint64_t entry)
{
    return entry != 0 ? (struct superblock *)(uintptr_t)(entry + HEAP_ROW_ORIGIN) : NULL;
}

#define HEAP_BATCH_CLOSED ((uint64_t)1 << 48)
#define HEAP_BATCH_ONE ((uint64_t)1 << 49)

/* Where the link to the next one in a batch is: in a block, and in a stub. */
enum { HEAP_BATCH_LINK = 8, HEAP_KEPT_LINK = 0 };

static inline uint64_t *heap_batch_link(void *block, bool is_stub)
{
    return (uint64_t *)(void *)((char *)block + (is_stub ? HEAP_KEPT_LINK : HEAP_BATCH_LINK));
}

enum { HEAP_DETOURS = 32 };

enum { HEAP_SPARSE = 8 }; /* slots of a class that have no huge pages */

enum { HEAP_NEVER = UINT16_MAX }; /* a regroup_at that no count reaches */

struct heap {
    struct bin bins[CLASSES]; /* first: of these a small process touches few */
    struct lock lock;
    uint16_t id;
    _Atomic bool orphan;      /* its threads have ended, or are not in this child of a fork */
    _Atomic bool was_alone;   /* it was the only heap, and may hold too much now that there are others */
    _Atomic bool deferred;    /* a superblock was queued or displaced while the lock was held */
    _Atomic uint32_t visited; /* threads between heap_visit and heap_visit_ends */
    _Atomic(struct list_node *) displaced; /* along link.next, not filed yet */
    _Atomic unsigned detours;              /* superblocks that came in a row while the lock was held */
    _Atomic uint32_t slots;                /* a, in slots: in bins, active, empty and displaced */
    uint32_t free_eighths;                 /* a - u as recorded, in eighths of slots */
    _Atomic(struct superblock *) queued;
    struct list empty[SUPERBLOCK_SIZES];
    _Atomic uint32_t empties;   /* superblocks on these lists */
    bool took_empty;            /* it took one off them since the last look (heap_give_unused) */
    bool given;                 /* to the global heap, since the lock was taken; heap_unlock settles */
    _Atomic uint32_t unseen;    /* slots of superblocks queued since somebody last took the queue */
    uint64_t with[GROUP_EMPTY]; /* the classes that have superblocks in the group */
    struct heap_counts counts;
    _Atomic uint8_t had[CLASSES]; /* slots that it got of the arenas for each class, up to HEAP_SPARSE */
    uint64_t idle, leaving;       /* classes whose active superblock was empty at the last look, and at two */
    uint64_t kept[CLASSES];       /* the words of its batches at the last look (heap_remote.c) */
};

static inline uint64_t *heap_slot(const struct heap *heap, unsigned class)
{
    ASSERT(class != 0 && class < CLASSES && heap->id < IDS_MAX);
    return &heap_rows[heap->id].active[class];
}

/* The active superblock of the class. Sections of the heap's threads may exchange it at any time. */
static inline struct superblock *heap_active(const struct heap *heap, unsigned class)
{
    return heap_entry_superblock(__atomic_load_n(heap_slot(heap, class), __ATOMIC_ACQUIRE));
}

static inline bool heap_is_active(const struct heap *heap, const struct superblock *sb)
{
    return heap_active(heap, sb->class) == sb;
}

static inline void superblock_set_owner(struct superblock *sb, unsigned owner)
{
    union superblock_role role = sb->role;
    role.owner = (uint16_t)owner;
    superblock_set_role(sb, role);
}

static inline unsigned heap_owner(const struct heap *heap)
{
    return heap_path_is_locked() ? OWNER_NONE : heap->id;
}

/* For assertions: returns true if it is the start of a block of the class. Of a wide one it is the stub. */
static inline bool heap_is_block(const void *block, unsigned class)
{
    bool wide = sizeclass_is_wide(class);
    const void *address = wide ? ((const struct stub *)block)->block : block;
    struct arena *arena = pagemap_find(address);
    if (arena == NULL || arena->mapping != 0) return false;
    const struct superblock *sb = arena_head(arena, address);
    return sb->class == class && superblock_has_number(sb, block_number(sb, block));
}

/* Held while a heap is made, and across a fork. Its rank is before all heaps' locks. */
extern HIDDEN struct lock heap_table_lock;

/* The heap with an id; makes it if it does not exist. NULL without memory. */
struct heap *heap_get(unsigned id);

/* Reads now what the second heap would have read: a process with two threads may enter a sandbox before it
 * has that. The caller holds no lock. */
void heap_know_the_machine(void);

/* Returns true if only one heap has ever been made. */
bool heap_is_alone(void);

/* This thread's heap at this moment; NULL if it has none yet, or without memory. */
struct heap *heap_mine(void);

/* The heap for this thread's next allocation; NULL without memory. */
struct heap *heap_for_malloc(void);

/* Locks this thread's heap. False, and the lock is not held: a stopped thread may hold it. */
bool heap_lock_soon(struct heap *heap);

/* A thread is inside this gate while it has a superblock in transit. It enters without a lock. */
extern HIDDEN struct gate heap_transit;

/* Locks the heap of a superblock. NULL, and no lock: it is on the global heap, or in transit from there. */
struct heap *heap_lock_of(struct superblock *sb);

/* The heap with the least id that is at least `id`, or NULL: for loops over all heaps. */
struct heap *heap_next(unsigned id);

#endif
