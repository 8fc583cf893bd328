/* SPDX-License-Identifier: Apache-2.0 */
/* heap_remote.h: remote frees: how a block gets back to its superblock. No call waits for a lock.
 *
 *     free  ->  batch of this id  ->  pending list of the superblock  ->  queue of its heap  ->  collected
 *
 * A malloc of the same class may take a block from the batch. If a superblock is on no heap, it is queued to
 * the global heap.
 */
#ifndef HEAP_REMOTE_H
#define HEAP_REMOTE_H

#include "arena/reclaim.h"
#include "heap/heap_table.h"

/* Puts a block of another heap into this id's batch. False: the caller makes it pending. No lock. */
bool heap_batch_put(struct superblock *sb, void *block);

/* Keeps the stub of a wide block for this id's next malloc of its class. False: half a superblock is kept,
 * the batch is closed, or this thread has another id now. */
static inline bool heap_keep(const struct superblock *sb, void *stub)
{
    ASSERT(sb->kind == SLOT_WIDE && cpu.ids != 0);
    unsigned id = rseq_id();
    uint64_t *at = &heap_batches[id].of[sb->class], word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if ((word & HEAP_BATCH_CLOSED) != 0) return false;
    if (word / HEAP_BATCH_ONE >= superblock_class(sb)->capacity / 2u) return false;
    uint64_t first = word % HEAP_BATCH_CLOSED;
    *heap_batch_link(stub, true) = first ^ superblock_cookie;
    if (rseq_store(id, at, word, word - first + HEAP_BATCH_ONE + (uintptr_t)stub) != RSEQ_DONE) {
        *heap_batch_link(stub, true) = 0;
        return false;
    }
    arena_tell_purger();
    return true;
}

/* Makes the wide blocks that this id keeps pending. Returns true if there were any. No lock. */
bool heap_keep_nothing(unsigned id);

/* Makes the blocks in this id's batches pending. No lock. */
void heap_batch_deliver(void);

/* Makes the blocks in any heap's batches pending, unless another thread takes batches now. In transit. */
void heap_batch_take(struct heap *heap);

/* Makes wide blocks pending that the heap's id kept, and has not used since the last call. In transit. */
bool heap_take_idle(struct heap *heap);

/* Makes a chain of blocks of another heap pending. Queues their superblock if it has many pending now. */
void heap_make_pending(struct superblock *sb, const struct chain *chain);

/* Queues a superblock, once, to its heap or to the global heap: a thread that needs memory looks at it. */
void heap_enqueue(struct superblock *sb);

/* Queues a superblock again to the heap where it is now, if it has pending blocks. */
void heap_enqueue_onward(struct superblock *sb);

/* Takes the queue of a heap; superblock_unqueue leads from one superblock to the next. */
struct superblock *heap_take_queued(struct heap *heap);

/* What is queued that was on no heap at that time, and its slots since somebody last took it. */
extern HIDDEN _Atomic(struct superblock *) heap_global_queued;
extern HIDDEN _Atomic uint32_t heap_global_unseen;

/* A queue of superblocks with so many slots is long. Set when it becomes long, or longer by as many. */
enum { HEAP_UNSEEN = 16 };
extern HIDDEN _Atomic bool heap_queues_are_long;

/* In a forked child: queues the queued superblocks again, with a new mark. So superblocks that a thread of
 * the parent had only marked can be queued. */
void heap_queue_fork_child(void);

#endif
