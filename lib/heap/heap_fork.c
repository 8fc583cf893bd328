/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/global_heap.h"
#include "heap/heap_policy.h"
#include "heap/heap_remote.h"

void heap_fork_prepare(void)
{
    gate_close_for_fork(&heap_transit);
    arena_fork_prepare();
    lock_for_fork(&heap_table_lock);
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u))
        lock_for_fork(&heap->lock);
    global_heap_fork_prepare();
}

void heap_fork_parent(void)
{
    global_heap_fork_parent();
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u))
        lock_after_fork(&heap->lock);
    lock_after_fork(&heap_table_lock);
    arena_fork_parent();
    gate_open_after_fork(&heap_transit);
}

void heap_fork_child(void)
{
    global_heap_fork_child();
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        lock_reset(&heap->lock);
        ASSERT(heap->id < IDS_MAX);
        heap->orphan = true;
        heap->visited = 0; /* by threads of the parent, which the child does not have */
    }
    lock_reset(&heap_table_lock);
    arena_fork_child();
    gate_reset(&heap_transit);
    heap_policy_fork_child();
    heap_queue_fork_child();
}
