/* SPDX-License-Identifier: Apache-2.0 */
/* heap_deferred.c: work that other threads leave to the holder of a heap's lock, who does it after giving the
 * lock back. */
#include "heap/heap_deferred.h"

#include "arena/arena.h"
#include "heap/global_heap.h"
#include "heap/heap_internal.h"

/* --- superblocks queued to this thread's heap ------------------------------------------------ */

static bool is_on(const struct heap *heap, const struct superblock *sb)
{
    return superblock_role(sb).heap == heap->id && (list_holds(&sb->link) || heap_is_active(heap, sb));
}

bool heap_collect_queued(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    bool mine = true;
    struct superblock *next, *sb = heap_take_queued(heap);
    for (; sb != NULL; sb = next) {
        next = superblock_unqueue(sb);
        if (!is_on(heap, sb))
            heap_enqueue_onward(sb);
        else if (mine && (mine = heap_collect(heap, sb)))
            heap_regroup_locked(heap, sb);
        else
            heap_enqueue(sb);
    }
    return mine;
}

/* --- the lock is given back -------------------------------------------------------------------- */

/* Superblocks that were given may have made slots unused. A thread sets `deferred` before its last try for
 * the lock. So either this thread or the holder sees it. */
COLD void heap_unlocked(struct heap *heap, bool given)
{
    ASSERT(lock_is_not_mine(&heap->lock));
    for (;;) {
        if (given) {
            global_heap_settle();
            arena_purge_after_free();
        }
        if (!atomic_load(&heap->deferred)) return;
        if (!heap_path_is_locked() && rseq_id() != heap->id)
            return; /* the next slow path of the heap's threads will look */
        if (!lock_try(&heap->lock)) return;
        atomic_store(&heap->deferred, false);
        heap_file_displaced(heap);
        heap_collect_queued(heap);
        given = heap->given;
        heap->given = false;
        ASSERT_WALK(2 * CLASSES * GROUPS + heap->slots, heap_adds_up(heap, true));
        lock_give(&heap->lock);
    }
}

/* The holder of the lock looks at `deferred` after it gives the lock back. If it has just done so, this
 * thread gets the lock. */
void heap_defer(struct heap *heap)
{
    ASSERT(lock_is_not_mine(&heap->lock));
    atomic_store(&heap->deferred, true);
    if (lock_try(&heap->lock)) heap_unlock(heap);
}

void heap_regroup(struct superblock *sb)
{
    unsigned id = superblock_role(sb).heap;
    struct heap *heap = id < HEAP_NONE ? heap_get(id) : NULL;
    if (heap == NULL) return;
    if (!lock_try(&heap->lock)) {
        heap_enqueue(sb);
        heap_defer(heap);
        return;
    }
    heap->counts.slow_frees++;
    if (superblock_role(sb).heap == id) heap_regroup_locked(heap, sb);
    heap_unlock(heap);
}
