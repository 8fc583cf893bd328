#include "assign.h"
#include "global.h"
#include "heap_state.h"

void heap_fork_prepare(void)
{
    lock_for_fork(&heap_table_lock);
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) lock_for_fork(&heap->lock);
    global_fork_prepare();
}

void heap_fork_parent(void)
{
    global_fork_parent();
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) lock_after_fork(&heap->lock);
    lock_after_fork(&heap_table_lock);
}

void heap_fork_child(void)
{
    global_fork_child();
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) {
        lock_reset(&heap->lock);
        heap->orphan = true;
    }
    lock_reset(&heap_table_lock);
    assign_fork_child();
    heap_post_fork_child();
}
