/* SPDX-License-Identifier: Apache-2.0 */
/* heap_deferred.h: the end of a heap's lock, and the work that waited for it.
 *
 * A thread that finds a heap's lock taken does not wait. It queues or displaces a superblock, sets
 * `deferred`, and tries the lock once more. The holder looks at `deferred` after it has given the lock back.
 * So one of the two sees the superblock.
 */
#ifndef HEAP_DEFERRED_H
#define HEAP_DEFERRED_H

#include "heap/heap_internal.h"

/* Collects the pending blocks of superblocks that were queued to this thread's heap, which is locked. False:
 * this thread has another id now. */
bool heap_collect_queued(struct heap *heap);

/* Gives the lock back. Then heap_unlocked settles the global heap and does the deferred work. */
void heap_unlocked(struct heap *heap, bool given);
static inline void heap_unlock(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    ASSERT_WALK(2 * CLASSES * GROUPS + heap->slots, heap_adds_up(heap, true));
    bool given = heap->given;
    if (UNLIKELY(given)) heap->given = false;
    lock_give(&heap->lock);
    if (UNLIKELY(given || atomic_load(&heap->deferred))) heap_unlocked(heap, given);
}

/* Says that a superblock was queued or displaced: the thread that has the heap's lock looks at it. No
 * lock. */
void heap_defer(struct heap *heap);

#endif
