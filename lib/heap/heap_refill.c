/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/arena.h"
#include "arena/false_sharing.h"
#include "base/probe.h"
#include "heap/global_heap.h"
#include "heap/heap_deferred.h"
#include "heap/heap_internal.h"

#include <errno.h>

/* --- superblocks that come to a heap ------------------------------------------------------------ */

/* Puts an unowned superblock onto this heap. One with notes of shared lines gets no owner: its frees go to
 * the pending list, and heap_collect decides which blocks become free. */
static struct superblock *adopt(struct heap *heap, struct superblock *sb, unsigned notes)
{
    ASSERT(!list_holds(&sb->link) && sb->link.next == NULL);
    ASSERT(notes == 0 || false_sharing_possible(sb->class));
    atomic_fetch_add_explicit(&heap->slots, superblock_slots(sb), memory_order_relaxed);
    superblock_set_role(
        sb, (union superblock_role){.owner = (uint16_t)(notes != 0 ? OWNER_NONE : heap_owner(heap)),
                                    .heap = heap->id,
                                    .regroup_at = HEAP_NEVER,
                                    .sharing_notes = (uint16_t)notes});
    return sb;
}

/* Returns true if it is the heap's first superblock of the class. Most classes never fill one. So the first
 * one has memory for carved blocks only: slots with an earlier life would still have all of it. */
static bool is_first(struct heap *heap, unsigned class)
{
    uint64_t bit = (uint64_t)1 << class;
    if ((atomic_load_explicit(&heap->met, memory_order_relaxed) & bit) != 0) return false;
    return (atomic_fetch_or(&heap->met, bit) & bit) == 0;
}

/* Takes slots from the arenas. The first one of a class is sparse until the class has a second one. Slots of
 * chunks are sparse too: an idle reap touches only one page of its first chunk. */
static struct superblock *from_arena(struct heap *heap, unsigned class)
{
    bool clean, first = is_first(heap, class);
    enum superblock_kind kind = superblock_kind_of(class);
    unsigned slots = sizeclasses[class].slots;
    struct superblock *sb = arena_take_slots(slots, kind, first || kind == SLOT_CHUNKS, &clean);
    if (sb == NULL) return NULL;
    if (!clean && first) arena_refresh(sb, slots);
    if (clean) arena_touch(sb);
    superblock_format(sb, class);
    PROBE(superblock_new, sb, class);
    ASSERT(superblock_live(sb) == 0 && !superblock_has_pending(sb));
    return adopt(heap, sb, 0);
}

/* If blocks share lines, a superblock with live blocks of other heaps is of no use without notes of these
 * lines. */
static struct superblock *from_global(struct heap *heap, unsigned class)
{
    struct superblock *sb = global_heap_take(class, heap->id, heap_enqueue);
    if (sb == NULL) return NULL;
    ASSERT(sb->class == class && sb->role.owner == OWNER_NONE && sb->role.heap == HEAP_NONE);
    bool needs_notes = sb->role.sharing_notes == SHARING_NOTES_GLOBAL && superblock_live(sb) != 0;
    unsigned notes = needs_notes ? false_sharing_begin(sb) : 0;
    if (needs_notes && notes == 0) {
        global_heap_give(sb, HEAP_NONE);
        global_heap_settle();
        return NULL;
    }
    __atomic_fetch_add(&heap->counts.transfers, 1, __ATOMIC_RELAXED);
    return adopt(heap, sb, notes);
}

/* Gets a superblock from outside the heap. While the arenas have dirty slots that no one uses, the OS need
 * not give memory, and so no other heap is visited. */
static struct superblock *obtain(struct heap *heap, unsigned class)
{
    struct superblock *sb = from_global(heap, class);
    if (sb == NULL && !arena_has_dirty() && heap_scavenge(heap)) sb = from_global(heap, class);
    return sb != NULL ? sb : from_arena(heap, class);
}

static bool has_free(const struct superblock *sb)
{
    uint64_t word = word_read(sb);
    return word_first(word) != 0 || word_carve(word) <= superblock_class(sb)->carve_limit;
}

/* Leaves a superblock that is in no row and on no list to the holder of the lock. */
static void displace(struct heap *heap, struct superblock *sb)
{
    ASSERT(sb->role.heap == heap->id && !list_holds(&sb->link) && sb->link.next == NULL);
    struct list_node *first = atomic_load(&heap->displaced);
    do sb->link.next = first;
    while (!atomic_compare_exchange_weak(&heap->displaced, &first, &sb->link));
    heap_defer(heap);
}

/* Puts an adopted superblock into the row, if this thread still has the heap's id and the active one is used
 * up. Files the old one, or else the new one. */
static void place_locked(struct heap *heap, struct superblock *sb)
{
    ASSERT(sb->role.heap == heap->id && lock_is_not_mine(&heap->lock));
    lock_take(&heap->lock);
    struct superblock *old = heap_active(heap, sb->class), *rest = sb;
    bool wanted = old == NULL || !has_free(old);
    if (wanted &&
        heap_store(heap, heap_slot(heap, sb->class), heap_entry(old), heap_entry(sb)) == RSEQ_DONE)
        rest = old;
    if (rest != NULL) heap_file(heap, rest);
    heap_keep_invariant(heap);
    heap_unlock(heap);
}

/* Puts an adopted superblock into the row without the lock, unless a visitor needs the row as it is. Leaves
 * the superblock that is not in the row to the holder of the lock. */
static void place(struct heap *heap, struct superblock *sb)
{
    struct superblock *old = heap_active(heap, sb->class);
    ASSERT(old != sb && sb->role.heap == heap->id);
    enum rseq_result result = RSEQ_CHANGED;
    if (!heap_path_is_locked() && (old == NULL || !has_free(old)))
        result = rseq_store_unless(&heap->visited, heap->id, heap_slot(heap, sb->class),
                                  heap_entry(old), heap_entry(sb));
    if (result == RSEQ_CHANGED)
        place_locked(heap, sb);
    else if (result == RSEQ_MOVED)
        displace(heap, sb);
    else if (old != NULL)
        displace(heap, old);
}

/* --- malloc ---------------------------------------------------------------------------------- */

enum refill {
    REFILLED,
    RETRY,
    NOTHING,  /* the heap has no superblock with free blocks */
    EXHAUSTED /* and there is none elsewhere */
};

/* Exchanges the active superblock. The old one has no threshold until heap_file sets one. heap_file then sees
 * the blocks that were freed into it meanwhile. */
static enum refill install(struct heap *heap, struct superblock *old, struct superblock *sb)
{
    ASSERT(lock_is_mine(&heap->lock) && !list_holds(&sb->link)); /* sb may be old, displaced since */
    superblock_warm(sb);
    enum rseq_result result =
        heap_store(heap, heap_slot(heap, sb->class), heap_entry(old), heap_entry(sb));
    struct superblock *rest = result == RSEQ_DONE ? old : sb;
    if (rest != NULL) heap_file(heap, rest);
    heap_keep_invariant(heap);
    return result == RSEQ_DONE ? REFILLED : RETRY;
}

/* A superblock with free blocks, off its list: an owned one from the bin, or an empty one, adopted; or
 * NULL. */
static struct superblock *choose(struct heap *heap, unsigned class)
{
    struct superblock *sb = bin_fullest(&heap->bins[class], 1);
    if (sb != NULL) {
        heap_bin_out(heap, sb);
        ASSERT(sb->class == class);
        return sb;
    }
    sb = heap_empty_out(heap, sizeclasses[class].slots);
    if (sb == NULL) return NULL;
    ASSERT(sb->role.owner == OWNER_NONE && superblock_live(sb) == 0);
    atomic_fetch_sub_explicit(&heap->slots, superblock_slots(sb), memory_order_relaxed);
    superblock_serve(sb, class);
    return adopt(heap, sb, 0);
}

static enum refill refill(struct heap *heap, unsigned class)
{
    ASSERT(lock_is_mine(&heap->lock));
    struct superblock *old = heap_active(heap, class);
    if (old != NULL) {
        if (!has_free(old) && !heap_collect(heap, old)) return RETRY;
        if (has_free(old)) return REFILLED; /* by remote frees, or by another thread of this id */
    }
    heap_file_displaced(heap);
    if (!heap_collect_queued(heap)) return RETRY;
    struct superblock *sb = choose(heap, class);
    return sb != NULL ? install(heap, old, sb) : NOTHING;
}

static void *pop_active(struct heap *heap, unsigned class)
{
    if (heap_path_is_locked()) return superblock_pop(heap_active(heap, class));
    void *block = heap_pop(class);
    return block != NULL ? block : heap_carve_one(class);
}

/* On the locked path threads come here for every block, not only when the active superblock is used up. */
static void *pop_locked(struct heap *heap, unsigned class)
{
    struct superblock *sb = heap_path_is_locked() ? heap_active(heap, class) : NULL;
    return sb != NULL ? superblock_pop(sb) : NULL;
}

/* Allocates from the heap, whose lock is held meanwhile. */
static enum refill from_heap(struct heap *heap, unsigned class, void **block)
{
    enum refill result = REFILLED;
    if (!heap_lock_soon(heap)) return NOTHING;
    *block = pop_locked(heap, class);
    if (*block == NULL) {
        heap->counts.slow_mallocs++;
        PROBE(slow_malloc, heap->id, class, sizeclasses[class].size);
        result = refill(heap, class);
        if (result == REFILLED) *block = pop_active(heap, class);
    }
    ASSERT(*block == NULL || heap_is_block(*block, class));
    heap_unlock(heap);
    return result;
}

/* Gets a superblock from outside the heap; no lock is held meanwhile. */
static enum refill from_elsewhere(struct heap *heap, unsigned class)
{
    ASSERT(lock_is_not_mine(&heap->lock));
    gate_enter(&heap_transit);
    struct superblock *sb = obtain(heap, class);
    if (sb != NULL) place(heap, sb);
    gate_leave(&heap_transit);
    arena_purge_if_due();
    return sb != NULL ? REFILLED : EXHAUSTED;
}

/* What others have freed into the active superblock serves before fresh blocks do, since its memory was
 * touched before. If the lock is held, fresh blocks serve. */
static void *from_pending(unsigned class)
{
    struct heap *heap = heap_mine();
    struct superblock *sb = heap != NULL ? heap_active(heap, class) : NULL;
    if (sb == NULL || !superblock_pending_is_worth(sb, class) || !lock_try(&heap->lock)) return NULL;
    heap->counts.slow_mallocs++;
    PROBE(slow_malloc, heap->id, class, sizeclasses[class].size);
    if (heap_active(heap, class) == sb) heap_collect(heap, sb);
    heap_unlock(heap);
    return heap_pop(class);
}

/* A block that the heap has without a superblock from elsewhere, and mostly without its lock; or NULL. */
static void *from_active(unsigned class)
{
    void *block = heap_batch_get(class);
    if (block == NULL) block = from_pending(class);
    return block != NULL ? block : heap_carve(class);
}

void *heap_malloc_slow(unsigned class)
{
    ASSERT(class != 0 && class < CLASSES && sizeclasses[class].size != 0);
    void *block = !heap_path_is_locked() ? from_active(class) : NULL;
    struct heap *heap = NULL;
    for (enum refill result = RETRY; block == NULL && result != EXHAUSTED;) {
        if (heap == NULL || !heap_path_is_locked()) heap = heap_for_malloc();
        if (heap == NULL) break;
        result = from_heap(heap, class, &block);
        if (result != NOTHING) continue;
        result = from_elsewhere(heap, class);
        if (result == REFILLED && !heap_path_is_locked()) block = pop_active(heap, class);
    }
    ASSERT(block == NULL || heap_is_block(block, class));
    if (block == NULL)
        errno = ENOMEM;
    else if (heap_path_is_locked())
        *(uint64_t *)block = 0;
    return block;
}
