/* SPDX-License-Identifier: Apache-2.0 */
/* heap_free.c: the slow path of free: blocks of other heaps, and the locked path. */
#include "arena/false_sharing.h"
#include "base/kernel.h"
#include "base/probe.h"
#include "heap/global_heap.h"
#include "heap/heap_emptiness.h"
#include "heap/heap_policy.h"
#include "heap/heap_reclaim.h"
#include "heap/heap_remote.h"

/* On the locked path. By ids: a thread may have one and no heap yet, and makes none under a lock. */
static void free_locked(struct superblock *sb, void *block)
{
    struct heap *heap;
    while ((heap = heap_lock_of(sb)) == NULL) {
        if (global_heap_free(sb, block)) return;
        KERNEL(SYS_sched_yield); /* it is in transit to a heap */
    }
    bool due = superblock_free_unowned(sb, block);
    ASSERT(lock_is_mine(&heap->lock) && sb->role.owner == OWNER_NONE);
    if (due && sb->role.sharing == SHARING_NOTES) heap_collect(heap, sb);
    if (due) heap_regroup_locked(heap, sb);
    heap->counts.slow_frees += due;
    bool is_idle = superblock_live(sb) == 0 && heap_is_active(heap, sb);
    if (is_idle && heap->id != heap_policy_last()) heap_enqueue(sb);
    heap_unlock(heap);
}

void heap_free_slow(struct superblock *sb, void *block)
{
    ASSERT(superblock_has_number(sb, block_number(sb, block)));
    if (heap_path_is_locked()) {
        free_locked(sb, block);
        return;
    }
    /* A block of another heap: into this id's batch, or home. */
    PROBE(remote_free, block, sb);
    struct heap *mine = heap_mine();
    if (mine != NULL) mine->counts.remote_frees++;
    if (mine == NULL || !heap_batch_put(sb, block)) {
        struct chain chain = chain_of_block(sb, block);
        heap_make_pending(sb, &chain);
    }
    if (UNLIKELY(atomic_load_explicit(&heap_queues_are_long, memory_order_relaxed))) heap_empty_queues();
}

/* Returns true if the block is free. Meanwhile the superblock has no owner and is not active. */
static bool has_free_block(struct heap *heap, struct superblock *sb, void *block)
{
    ASSERT(lock_is_mine(&heap->lock) && (cpu.ids == 0 || heap->visited != 0));
    unsigned owner = sb->role.owner;
    if (owner != OWNER_NONE) {
        superblock_set_owner(sb, OWNER_NONE);
        rseq_fence();
    }
    uint64_t *slot = heap_slot(heap, sb->class);
    bool active = heap_is_active(heap, sb);
    if (active && !heap_path_is_locked()) { /* other threads' mallocs still use the row */
        __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
        rseq_fence();
    }
    bool has = superblock_has_free(sb, block) || false_sharing_holds(sb, block);
    if (owner != OWNER_NONE) superblock_set_owner(sb, owner);
    if (active) __atomic_store_n(slot, heap_entry(sb), __ATOMIC_RELEASE);
    return has;
}

/* The loop starts again when the superblock has gone to another heap meanwhile. */
bool heap_block_is_free(struct superblock *sb, void *block)
{
    heap_deliver_all();
    for (;;) {
        unsigned id = superblock_role(sb).heap;
        if (id >= HEAP_NONE) return global_heap_has_free(sb, block);
        struct heap *heap = heap_get(id);
        heap_visit(heap);
        lock_take(&heap->lock);
        ASSERT(heap->id == id);
        bool is_here = superblock_role(sb).heap == id;
        bool has = is_here && has_free_block(heap, sb, block);
        heap_unlock(heap);
        heap_visit_ends(heap);
        if (is_here) return has;
    }
}
