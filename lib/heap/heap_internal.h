/* SPDX-License-Identifier: Apache-2.0 */
/* heap_internal.h: a heap from within, for the parts of this layer.
 *
 * a, in superblocks, is the number in bins, active and in `empty`; a - u, as recorded, is the sum of the
 * groups of those in bins and 8 for each in `empty`; an active one counts as full (heap_is_valid).
 * Everything but `queued`, `met`, `superblocks`, `deferred`, `detours` and the counts is under the lock.
 *
 * Only one thread at a time runs with a heap's id. So who finds the heap's lock taken, finds it taken by a
 * thread that the kernel has stopped, for milliseconds on a busy machine. Such a thread is not waited for: a
 * free queues the superblock that is due for another group (`deferred`), for who has the lock to look at; a
 * malloc gets a superblock from the global heap or the arenas and puts it into the row by a section, which
 * takes no lock; the one that was there is on the list of displaced ones, until who has the lock files
 * it. A heap may get HEAP_DETOURS superblocks so, and then its threads do wait.
 *
 * Who takes an active superblock from the heap of another id sets `visited` before, and has a fence run: then
 * the row changes under the lock only.
 *
 * A superblock that is on its way, on no list and in no row, is in the hands of a thread that passes the gate
 * of transit: fork closes it, so that no child loses one.
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
    _Atomic bool orphan;      /* its threads have ended, or stayed behind in the parent of a fork */
    _Atomic bool was_alone;   /* and may hold more than it may now that there are others */
    _Atomic uint64_t met;     /* the classes that it ever asked the arenas for */
    _Atomic bool deferred;    /* something was queued or displaced while the lock was held */
    _Atomic uint32_t visited; /* threads that are about to take active superblocks */
    _Atomic(struct list_node *) displaced; /* to be filed, along link.next; taken whole */
    _Atomic unsigned detours;              /* superblocks that came while the lock was held */
    _Atomic uint32_t superblocks;          /* a, in superblocks: in bins, active, empty and displaced */
    uint32_t free_eighths;                 /* a - u as recorded, in eighths of superblocks */
    _Atomic(struct superblock *) queued;
    struct list empty;
    bool given;                 /* to the global heap, since the lock was taken: for heap_unlock to settle */
    uint64_t with[GROUP_EMPTY]; /* the classes that have superblocks in the group */
    struct bin bins[CLASSES];
    struct heap_counts counts;
};

static inline struct superblock **heap_slot(const struct heap *heap, unsigned class)
{
    ASSERT(class != 0 && class < CLASSES && heap->id < IDS_MAX);
    return &heap_rows[heap->id].active[class];
}

/* What is there now: sections of the heap's threads may exchange it at any time. */
static inline struct superblock *heap_active(const struct heap *heap, unsigned class)
{
    return __atomic_load_n(heap_slot(heap, class), __ATOMIC_ACQUIRE);
}

static inline bool heap_is_active(const struct heap *heap, const struct superblock *sb)
{
    return heap_active(heap, sb->class) == sb;
}

static inline void superblock_set_regroup_at(struct superblock *sb, unsigned count)
{
    ASSERT(count <= UINT16_MAX);
    union superblock_role role = sb->role;
    role.regroup_at = (uint16_t)count;
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

/* For assertions: is it the start of a block of the class? */
static inline bool heap_is_block(const void *block, unsigned class)
{
    struct arena *arena = pagemap_find(block);
    if (arena == NULL || arena->mapping != 0) return false;
    const struct superblock *sb = arena_slot(arena, block);
    return sb->class == class && superblock_has_number(sb, block_number(sb, block));
}

/* --- heap_policy.c --------------------------------------------------------------------------------- */

/* On the locked path this thread's heap, plus one; 0: none yet. Not static, so that one thread of a test can
 * act as many processors. */
extern HIDDEN __thread uint16_t heap_of_thread __attribute__((tls_model("initial-exec")));

/* --- heap_table.c ---------------------------------------------------------------------------- */

/* While a heap is made, and over a fork. Before all heaps' locks in rank. */
extern HIDDEN struct lock heap_table_lock;

/* The heap with an id, made if it has to be; NULL without memory. */
struct heap *heap_get(unsigned id);

/* Has only one heap ever been made? */
bool heap_is_alone(void);

/* This thread's heap, as of now; NULL if it has none yet, or without memory. */
struct heap *heap_mine(void);

/* The heap for this thread's next allocation; NULL without memory. */
struct heap *heap_for_malloc(void);

/* Locks this thread's heap, unless its lock is held by a thread that does not run; then it may be false. */
bool heap_lock_soon(struct heap *heap);

/* Who has a superblock in hand that is on its way passes this; no lock is held when it is entered. */
extern HIDDEN struct gate heap_transit;

/* Locks the heap that a superblock is on; NULL, and nothing is locked, when that is the global heap or it is
 * on its way from there. */
struct heap *heap_lock_of(struct superblock *sb);

/* The heap with the least id from `id` on, or NULL: to go through all of them. */
struct heap *heap_next(unsigned id);

/* --- heap_emptiness.c: the heap is locked ------------------------------------------------------- */

/* *at := value, if this thread has the heap's id and *at is expected; on the locked path always. */
enum rseq_result heap_store(struct heap *heap, void *at, uint64_t expected, uint64_t value);

/* Moves what is pending to the free list of an active or owned superblock. False: this thread has another
 * id now, and nothing has changed. */
bool heap_collect(struct heap *heap, struct superblock *sb);

/* Files an owned superblock that is neither active nor on a list by what is free in it now. */
void heap_file(struct heap *heap, struct superblock *sb);

/* Takes a superblock off its bin; takes any empty one off its list, or NULL. Accounts follow, `superblocks`
 * does not. */
void heap_bin_out(struct heap *heap, struct superblock *sb);
struct superblock *heap_empty_out(struct heap *heap);

/* heap_regroup under the lock. */
void heap_regroup_locked(struct heap *heap, struct superblock *sb);

/* Files what was displaced. */
void heap_file_displaced(struct heap *heap);

/* Takes one that was displaced off their list, or NULL. */
struct superblock *heap_displaced_out(struct heap *heap);

/* Are the heap's lists as its accounts say, as far as others leave them alone? Debug builds only. */
bool heap_lists_are_sound(const struct heap *heap);

bool heap_holds_too_much(const struct heap *heap);
size_t heap_keep_invariant(struct heap *heap); /* how many superblocks it gave for that */

/* --- heap_batch.c: where there is rseq ------------------------------------------------------- */

/* Leaves a block of another heap in this id's batch of its class; false: it has to be made pending at once.
 * No lock. */
bool heap_batch_put(struct superblock *sb, void *block);

/* Takes one back, if blocks of the class share no lines with others: then it does not matter whose it is. Or
 * NULL. No lock. */
void *heap_batch_get(unsigned class);

/* Makes pending what is in this id's batches. No lock. */
void heap_batch_deliver(void);

/* The same for those of any heap, unless another thread is at it. In transit. */
void heap_batch_take(struct heap *heap);

void heap_batch_fork_child(void);

/* --- heap_queue.c: no lock --------------------------------------------------------------------- */

/* Makes a chain of blocks of another heap pending, and queues the superblock to that heap if it has much
 * pending now. */
void heap_make_pending(struct superblock *sb, const struct chain *chain);

/* Puts a superblock on the list of its heap, or the global heap's, so that whoever needs memory looks at it;
 * once. */
void heap_enqueue(struct superblock *sb);

/* What was queued to a heap that it has left is queued to the one where it is. */
void heap_enqueue_onward(struct superblock *sb);

/* In a forked child: mends what threads of the parent were about to do. */
void heap_queue_fork_child(void);

/* --- heap_reclaim.c --------------------------------------------------------------------------- */

/* Between the two the row of a heap changes under its lock only. Before the lock is taken. */
void heap_visit(struct heap *heap);
void heap_visit_ends(struct heap *heap);

/* Before memory is asked of the OS: has what lies idle on other heaps given to the global heap. True:
 * something was. In transit, without a lock. */
bool heap_scavenge(const struct heap *mine);

#endif
