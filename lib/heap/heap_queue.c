/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/global_heap.h"
#include "heap/heap_internal.h"

/* The value of `queued` while a superblock is on a list. Each child of a fork has another value: a thread of
 * the parent may have marked a superblock without having put it on the list. */
static uint8_t heap_queue_mark = 1;

/* A heap looks at its queue when its threads need memory. Threads that sleep, or have ended, never do. So the
 * thread that makes a queue long empties it itself after its free. */
_Atomic bool heap_queues_are_long;

struct superblock *heap_take_queued(struct heap *heap)
{
    atomic_store_explicit(&heap->unseen, 0, memory_order_relaxed);
    return superblock_take_queued(&heap->queued);
}

static void count_unseen(_Atomic uint32_t *unseen, unsigned slots)
{
    uint32_t before = atomic_fetch_add_explicit(unseen, slots, memory_order_relaxed);
    if (before / HEAP_UNSEEN != (before + slots) / HEAP_UNSEEN) atomic_store(&heap_queues_are_long, true);
}

static void push(_Atomic(struct superblock *) *list, struct superblock *sb)
{
    ASSERT(sb->queued != 0);
    struct superblock *first = atomic_load_explicit(list, memory_order_relaxed);
    do sb->queued_next = first;
    while (
        !atomic_compare_exchange_weak_explicit(list, &first, sb, memory_order_release, memory_order_relaxed));
}

void heap_enqueue(struct superblock *sb)
{
    uint8_t mark = heap_queue_mark;
    if (atomic_load(&sb->queued) == mark || atomic_exchange(&sb->queued, mark) == mark) return;
    unsigned id = superblock_role(sb).heap;
    struct heap *heap = id < HEAP_NONE ? heap_get(id) : NULL;
    ASSERT(id >= HEAP_NONE || heap != NULL);
    push(heap != NULL ? &heap->queued : &global_heap_queued, sb);
    count_unseen(heap != NULL ? &heap->unseen : &global_heap_unseen, superblock_slots(sb));
}

/* The load must not be relaxed: the CPU could do it before superblock_unqueue's store. */
void heap_enqueue_onward(struct superblock *sb)
{
    if (superblock_has_pending(sb)) heap_enqueue(sb);
}

void heap_make_pending(struct superblock *sb, const struct chain *chain)
{
    ASSERT(chain->count != 0);
    if (superblock_pending_is_due(sb, superblock_put_pending(sb, chain), chain->count)) heap_enqueue(sb);
}

static void enqueue_anew(_Atomic(struct superblock *) *list)
{
    struct superblock *next, *sb = superblock_take_queued(list);
    for (; sb != NULL; sb = next) {
        next = superblock_unqueue(sb);
        heap_enqueue(sb);
    }
}

void heap_queue_fork_child(void)
{
    heap_queue_mark = heap_queue_mark % UINT8_MAX + 1;
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) enqueue_anew(&heap->queued);
    enqueue_anew(&global_heap_queued);
}
