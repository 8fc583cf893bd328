/* SPDX-License-Identifier: Apache-2.0 */
/* heap_internal.h: a heap from within, for the files of this layer.
 *
 * a, in slots, is the sum of those of superblocks in bins, active and in `empty`. a - u, as recorded, is the
 * sum of the groups of those in bins, each group times the slots, and 8 for each slot in `empty`; an active
 * superblock counts as full (heap_is_valid).
 * The lock covers all fields that are not atomic, but not the counts.
 *
 * Only one thread at a time runs with a heap's id. So if a thread finds its heap's lock taken, the holder is
 * a stopped thread, and stays stopped for milliseconds on a busy machine. No thread waits for it. A free
 * queues the superblock that is due for another group and sets `deferred`, and the holder looks at it. A
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
#ifndef HEAP_INTERNAL_H
#define HEAP_INTERNAL_H

#include "arena/arena.h"
#include "base/lock.h"
#include "heap/bin.h"
#include "heap/heap.h"
#include "heap/heap_fast.h"
#include "heap/heap_path.h"
#include "os/rseq.h"

enum { HEAP_DETOURS = 32 };

enum { HEAP_NEVER = UINT16_MAX }; /* a regroup_at that no count reaches */

struct heap {
    struct lock lock;
    uint16_t id;
    _Atomic bool orphan;      /* its threads have ended, or are not in this child of a fork */
    _Atomic bool was_alone;   /* it was the only heap, and may hold too much now that there are others */
    _Atomic uint64_t met;     /* the classes for which it has asked the arenas */
    _Atomic bool deferred;    /* a superblock was queued or displaced while the lock was held */
    _Atomic uint32_t visited; /* threads between heap_visit and heap_visit_ends */
    _Atomic(struct list_node *) displaced; /* along link.next, not filed yet */
    _Atomic unsigned detours;              /* superblocks that came in a row while the lock was held */
    _Atomic uint32_t slots;                /* a, in slots: in bins, active, empty and displaced */
    uint32_t free_eighths;                 /* a - u as recorded, in eighths of slots */
    _Atomic(struct superblock *) queued;
    struct list empty[SUPERBLOCK_SIZES];
    bool given;                 /* to the global heap, since the lock was taken; heap_unlock settles */
    _Atomic uint32_t unseen;    /* slots of superblocks queued since somebody last took the queue */
    uint64_t with[GROUP_EMPTY]; /* the classes that have superblocks in the group */
    struct heap_counts counts;
    struct bin bins[CLASSES]; /* last: a small process touches few of them */
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

/* Makes an owned superblock warm, without a threshold: it will be active. */
static inline void superblock_warm(struct superblock *sb)
{
    union superblock_role role = sb->role;
    role.regroup_at = HEAP_NEVER;
    if (role.owner != OWNER_NONE) role.owner = role.heap;
    superblock_set_role(sb, role);
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

/* --- heap_policy.c --------------------------------------------------------------------------------- */

/* On the locked path this thread's heap, plus one; 0: none yet. A test changes it, so that one thread can act
 * as many processors. */
extern HIDDEN __thread uint16_t heap_of_thread __attribute__((tls_model("initial-exec")));

/* --- heap_table.c ---------------------------------------------------------------------------- */

/* Held while a heap is made, and across a fork. Its rank is before all heaps' locks. */
extern HIDDEN struct lock heap_table_lock;

/* The heap with an id; makes it if it does not exist. NULL without memory. */
struct heap *heap_get(unsigned id);

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

/* Locks the heap that a superblock is on. NULL, and no lock: it is on the global heap, or in transit from
 * there. */
struct heap *heap_lock_of(struct superblock *sb);

/* The heap with the least id that is at least `id`, or NULL: for loops over all heaps. */
struct heap *heap_next(unsigned id);

/* --- heap_emptiness.c: the heap is locked ------------------------------------------------------- */

/* *at := value, if this thread has the heap's id and *at is expected; on the locked path without a
 * condition. */
enum rseq_result heap_store(struct heap *heap, void *at, uint64_t expected, uint64_t value);

/* Moves pending blocks to the free list of an active or owned superblock. False: this thread has another id
 * now, and nothing has changed. */
bool heap_collect(struct heap *heap, struct superblock *sb);

/* Files an owned superblock that is neither active nor on a list, by the number of its free blocks. */
void heap_file(struct heap *heap, struct superblock *sb);

/* Takes a superblock out of its bin; takes any empty one of so many slots off its list, or returns NULL. Both
 * adjust the accounts, but not `slots`. */
void heap_bin_out(struct heap *heap, struct superblock *sb);
struct superblock *heap_empty_out(struct heap *heap, unsigned slots);
struct superblock *heap_any_empty_out(struct heap *heap);

/* heap_regroup under the lock. */
void heap_regroup_locked(struct heap *heap, struct superblock *sb);

/* Files all displaced superblocks. */
void heap_file_displaced(struct heap *heap);

/* Takes one displaced superblock off their list, or returns NULL. */
struct superblock *heap_displaced_out(struct heap *heap);

/* For tests and assertions: returns true if the heap's lists and accounts agree, as far as no section of
 * another thread can change them meanwhile. If others run, the caller has the lock. */
bool heap_adds_up(const struct heap *heap, bool others_run);

bool heap_holds_too_much(const struct heap *heap);
size_t heap_keep_invariant(struct heap *heap); /* returns the number of superblocks given */

/* --- heap_batch.c: where there is rseq ------------------------------------------------------- */

/* Puts a block of another heap into this id's batch of its class. False: the caller has to make it pending.
 * No lock. */
bool heap_batch_put(struct superblock *sb, void *block);

/* Takes a block from this id's batch, if blocks of the class share no cache lines: then its owner does not
 * matter. Or NULL. No lock. */
void *heap_batch_get(unsigned class);

/* Makes the blocks in this id's batches pending. No lock. */
void heap_batch_deliver(void);

/* Makes the blocks in any heap's batches pending, unless another thread takes batches now. In transit. */
void heap_batch_take(struct heap *heap);

/* --- heap_queue.c: no lock --------------------------------------------------------------------- */

/* Makes a chain of blocks of another heap pending. Queues their superblock if it has many pending now. */
void heap_make_pending(struct superblock *sb, const struct chain *chain);

/* Queues a superblock, once, to its heap or to the global heap: a thread that needs memory looks at it. */
void heap_enqueue(struct superblock *sb);

/* Queues a superblock again to the heap where it is now, if it has pending blocks. */
void heap_enqueue_onward(struct superblock *sb);

/* Takes the queue of a heap; superblock_unqueue leads from one superblock to the next. */
struct superblock *heap_take_queued(struct heap *heap);

/* A queue of superblocks with so many slots is long. Set when it becomes long, or longer by as many. */
enum { HEAP_UNSEEN = 16 };
extern HIDDEN _Atomic bool heap_queues_are_long;

/* In a forked child: queues the queued superblocks again, with a new mark. So superblocks that a thread of
 * the parent had only marked can be queued. */
void heap_queue_fork_child(void);

/* --- heap_reclaim.c --------------------------------------------------------------------------- */

/* Between these two calls the row of a heap changes under its lock only. heap_visit comes before the lock is
 * taken. */
void heap_visit(struct heap *heap);
void heap_visit_ends(struct heap *heap);

/* Gives idle superblocks of other heaps to the global heap, before the arenas ask the OS for memory. True: it
 * gave some. In transit, without a lock. */
bool heap_scavenge(const struct heap *mine);

/* Empties long queues, whose heaps seem to do nothing any more. For a thread that frees, without a lock. */
void heap_empty_queues(void);

#endif
