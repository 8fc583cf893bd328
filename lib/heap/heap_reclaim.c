/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/heap_reclaim.h"

#include "heap/global_heap.h"
#include "heap/heap_emptiness.h"
#include "heap/heap_policy.h"
#include "heap/heap_remote.h"

/* --- taking back from the heaps of others ---------------------------------------------------- */

static void announce_visit(struct heap *heap)
{
    ASSERT(!lock_is_mine(&heap->lock));
    if (!heap_path_is_locked()) atomic_fetch_add(&heap->visited, 1);
}

/* Waits for the sections that run now. It is a system call, so the caller holds no lock. */
static void let_sections_end(void)
{
    if (!heap_path_is_locked()) rseq_fence();
}

void heap_visit(struct heap *heap)
{
    announce_visit(heap);
    let_sections_end();
}

void heap_visit_ends(struct heap *heap)
{
    if (!heap_path_is_locked()) atomic_fetch_sub(&heap->visited, 1);
}

/* Takes a superblock off the row or its bin, if it is there, and stops its owner's frees. It is in transit
 * from now on, and unowned after rseq_fence. */
static void pull_out(struct heap *heap, struct superblock *sb, struct list *pulled)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.heap == heap->id && heap->slots >= superblock_slots(sb));
    ASSERT(cpu.ids == 0 || heap->visited != 0 || list_holds(&sb->link));
    union superblock_role role = sb->role;
    if (heap_is_active(heap, sb))
        __atomic_store_n(heap_slot(heap, sb->class), 0, __ATOMIC_RELEASE);
    else if (list_holds(&sb->link))
        heap_bin_out(heap, sb);
    role.owner = OWNER_NONE;
    role.heap = HEAP_NONE;
    role.left_by = heap->id & (IDS_MAX - 1);
    superblock_set_role(sb, role);
    atomic_fetch_sub_explicit(&heap->slots, superblock_slots(sb), memory_order_relaxed);
    __atomic_fetch_add(&heap->counts.transfers, 1, __ATOMIC_RELAXED);
    ASSERT(!heap_is_active(heap, sb));
    list_push(pulled, &sb->link);
}

/* Gives pulled superblocks to the global heap. Without a lock, since the fence is a system call. */
static size_t give_pulled(struct list *pulled)
{
    size_t n = 0;
    if (!list_is_empty(pulled)) let_sections_end(); /* once for all */
    for (struct list_node *node; (node = list_pop(pulled)) != NULL; n++) {
        struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
        global_heap_give(sb, sb->role.left_by);
    }
    global_heap_settle();
    return n;
}

/* Pulls every superblock of a heap that is locked, and visited. */
static void pull_all(struct heap *heap, struct list *pulled)
{
    ASSERT(lock_is_mine(&heap->lock) && (cpu.ids == 0 || heap->visited != 0));
    struct superblock *sb;
    while ((sb = heap_displaced_out(heap)) != NULL) pull_out(heap, sb, pulled);
    for (unsigned class = 1; class < CLASSES; ++class) {
        if ((sb = heap_active(heap, class)) != NULL) pull_out(heap, sb, pulled);
        while ((sb = bin_emptiest(&heap->bins[class])) != NULL) pull_out(heap, sb, pulled);
    }
    while ((sb = heap_any_empty_out(heap)) != NULL) pull_out(heap, sb, pulled);
    ASSERT(heap->free_eighths == 0);
}

static size_t give_all_of(struct heap *heap)
{
    struct list pulled = {NULL};
    heap_visit(heap);
    lock_take(&heap->lock);
    pull_all(heap, &pulled);
    heap->orphan = heap->was_alone = false;
    heap_unlock(heap);
    heap_visit_ends(heap);
    return give_pulled(&pulled);
}

/* The superblock was queued to a locked heap and is on it, but on no list. An active one is worth pulling if
 * no block in it is live. Without a visit a thread of the heap may displace it at any time, so the code reads
 * the row once. A displaced superblock cannot be pulled. True: it is worth a visit, and the heap is not
 * visited. */
static bool pull_unlisted(struct heap *heap, struct superblock *sb, bool visited, struct list *pulled)
{
    ASSERT(!list_holds(&sb->link) && sb->role.heap == heap->id);
    if (!heap_is_active(heap, sb)) {
        heap_enqueue_onward(sb);
        return false;
    }
    if (superblock_live(sb) != 0) return false;
    if (visited)
        pull_out(heap, sb, pulled);
    else
        heap_enqueue(sb);
    return !visited;
}

/* Pulls what was queued to a locked heap. True: an active one is worth a visit, and there is none. */
static bool pull_queued(struct heap *heap, bool visited, struct list *pulled)
{
    ASSERT(lock_is_mine(&heap->lock));
    bool left = false;
    struct superblock *next, *sb = heap_take_queued(heap);
    for (; sb != NULL; sb = next) {
        next = superblock_unqueue(sb);
        if (superblock_role(sb).heap != heap->id)
            heap_enqueue_onward(sb);
        else if (!list_holds(&sb->link))
            left |= pull_unlisted(heap, sb, visited, pulled);
        else if (sb->group != GROUP_EMPTY)
            pull_out(heap, sb, pulled);
    }
    return left;
}

/* Gives superblocks with remote frees of another heap than this thread's to the global heap. The other heap
 * then has fewer slots, and must keep its invariant again. */
static size_t give_queued(struct heap *heap)
{
    size_t n = 0;
    struct list pulled = {NULL};
    bool left = false;
    if (lock_try(&heap->lock)) {
        left = pull_queued(heap, heap_path_is_locked(), &pulled);
        n = heap_keep_invariant(heap);
        heap->was_alone = false;
        heap_unlock(heap);
    } else {
        atomic_store(&heap->deferred, true); /* its holder looks at the queue */
    }
    if (left) {
        heap_visit(heap);
        if (lock_try(&heap->lock)) {
            pull_queued(heap, true, &pulled);
            n += heap_keep_invariant(heap);
            heap_unlock(heap);
        }
        heap_visit_ends(heap);
    }
    return n + give_pulled(&pulled);
}

/* It only tries the locks of heaps that have threads. */
bool heap_scavenge(const struct heap *mine)
{
    if (!heap_path_is_locked()) heap_batch_deliver();
    size_t n = 0;
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        if (heap == mine) continue;
        if (heap_policy_has_ended(heap->id)) heap->orphan = true;
        bool has_queued = atomic_load_explicit(&heap->queued, memory_order_relaxed) != NULL;
        if (!heap->orphan && !heap->was_alone && !has_queued) continue;
        if (heap->orphan) heap_batch_take(heap);
        n += heap->orphan ? give_all_of(heap) : give_queued(heap);
    }
    return n != 0;
}

COLD void heap_empty_queues(void)
{
    if (!atomic_exchange(&heap_queues_are_long, false)) return;
    gate_enter(&heap_transit);
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u))
        if (atomic_load_explicit(&heap->unseen, memory_order_relaxed) >= HEAP_UNSEEN) give_queued(heap);
    if (atomic_load_explicit(&heap_global_unseen, memory_order_relaxed) >= HEAP_UNSEEN)
        global_heap_take_queued();
    gate_leave(&heap_transit);
    arena_purge_after_free();
}

_Atomic uint64_t heap_looked_at;

/* The empty superblocks of all heaps. An orphan's too: nobody owns them, so this takes no fence. */
static void give_unused(void)
{
    bool any = false;
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        if (atomic_load_explicit(&heap->empties, memory_order_relaxed) == 0) continue;
        if (!lock_try(&heap->lock)) continue;
        any |= heap_give_unused(heap);
        heap_unlock(heap);
    }
    if (any) global_heap_settle();
}

static bool is_idle(const struct superblock *sb) { return sb != NULL && superblock_live(sb) == 0; }

/* Notes the classes whose active superblock has no live block; returns those noted twice in a row. */
static uint64_t idle_again(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    uint64_t before = heap->idle;
    heap->idle = 0;
    for (unsigned class = 1; class < CLASSES; ++class)
        if (is_idle(heap_active(heap, class))) heap->idle |= (uint64_t)1 << class;
    return before & heap->idle;
}

static void pull_idle(struct heap *heap, struct list *pulled)
{
    lock_take(&heap->lock);
    for (uint64_t left = heap->leaving; left != 0; left &= left - 1) {
        struct superblock *active = heap_active(heap, (unsigned)__builtin_ctzll(left));
        if (is_idle(active)) pull_out(heap, active, pulled);
    }
    heap->leaving = heap->idle = 0;
    heap_keep_invariant(heap);
    heap_unlock(heap);
}

/* The active superblocks that are empty at two looks. All heaps are visited with one fence. */
static void give_idle(void)
{
    struct list pulled = {NULL};
    uint64_t any = 0;
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        if (!lock_try(&heap->lock)) continue;
        any |= heap->leaving = idle_again(heap);
        heap_unlock(heap);
        if (heap->leaving != 0) announce_visit(heap);
    }
    if (any == 0) return;
    let_sections_end();
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        if (heap->leaving == 0) continue;
        pull_idle(heap, &pulled);
        heap_visit_ends(heap);
    }
    give_pulled(&pulled);
}

static void send_kept_home(bool of_orphans)
{
    bool any = false;
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u))
        if (of_orphans || !heap->orphan || heap->id == rseq_id()) any |= heap_take_idle(heap);
    for (struct heap *heap = heap_next(0); any && heap != NULL; heap = heap_next(heap->id + 1u)) {
        if (atomic_load_explicit(&heap->queued, memory_order_relaxed) == NULL) continue;
        if (heap->id == rseq_id())
            heap_defer(heap);
        else
            give_queued(heap);
    }
    if (any) global_heap_take_queued();
}

COLD void heap_send_idle_home(bool of_orphans)
{
    atomic_store_explicit(&heap_looked_at, arena_purged_at(), memory_order_relaxed);
    gate_enter(&heap_transit);
    if (!heap_path_is_locked()) send_kept_home(of_orphans);
    /* also what the blocks that went home have emptied */
    give_unused();
    if (of_orphans) give_idle();
    global_heap_give_unused();
    gate_leave(&heap_transit);
}

void heap_give_idle(void)
{
    gate_enter(&heap_transit);
    heap_scavenge(NULL);
    gate_leave(&heap_transit);
}

void heap_give_all(void)
{
    gate_enter(&heap_transit);
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        heap_batch_take(heap);
        give_all_of(heap);
    }
    global_heap_collect();
    gate_leave(&heap_transit);
}
