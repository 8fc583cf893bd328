/* SPDX-License-Identifier: Apache-2.0 */
/* heap_refill.c: the slow path of malloc. heap_malloc_slow, at the end, lists the sources of a block. */
#include "arena/arena.h"
#include "arena/false_sharing.h"
#include "base/probe.h"
#include "heap/global_heap.h"
#include "heap/heap_emptiness.h"
#include "heap/heap_fast.h"
#include "heap/heap_reclaim.h"

#include <errno.h>

/* --- superblocks that come to a heap ------------------------------------------------------------ */

/* Puts an unowned superblock onto this heap. One with notes of shared lines gets no owner: its frees go to
 * the pending list, and heap_collect decides which blocks become free. */
static struct superblock *adopt(struct heap *heap, struct superblock *sb, bool has_notes)
{
    ASSERT(!list_holds(&sb->link) && sb->link.next == NULL);
    ASSERT(!has_notes || false_sharing_possible(sb->class));
    atomic_fetch_add_explicit(&heap->slots, superblock_slots(sb), memory_order_relaxed);
    superblock_set_role(
        sb, (union superblock_role){.owner = (uint16_t)(has_notes ? OWNER_NONE : heap_owner(heap)),
                                    .heap = heap->id,
                                    .regroup_at = HEAP_NEVER,
                                    .sharing = has_notes ? SHARING_NOTES : SHARING_NONE});
    return sb;
}

/* Returns how many slots the heap got of the arenas for the class, counted up to HEAP_SPARSE, and counts
 * more. Two threads may count the same ones: then the class has more sparse ones. */
static unsigned count_slots(struct heap *heap, unsigned class, unsigned more)
{
    unsigned had = atomic_load_explicit(&heap->had[class], memory_order_relaxed), sum = had + more;
    uint8_t now = (uint8_t)(sum < HEAP_SPARSE ? sum : HEAP_SPARSE);
    if (had < HEAP_SPARSE) atomic_store_explicit(&heap->had[class], now, memory_order_relaxed);
    return had;
}

/* Takes slots from the arenas. The first superblocks of a class are sparse, since most classes never fill
 * them, and so are those of chunks: an idle reap touches only one page of its first chunk. The very first of
 * a class has memory for carved blocks only: slots with an earlier life would still have all of it. */
static struct superblock *from_arena(struct heap *heap, unsigned class)
{
    enum superblock_kind kind = superblock_kind_of(class);
    unsigned slots = sizeclasses[class].slots, had = count_slots(heap, class, slots);
    bool clean, first = had == 0;
    enum arena_use use = kind == SLOT_CHUNKS ? ARENA_CHUNKS : had < HEAP_SPARSE ? ARENA_SPARSE : ARENA_PLAIN;
    struct superblock *sb = arena_take(slots, kind, use, &clean);
    if (sb == NULL) return NULL;
    if (!clean && first) clean = arena_refresh(sb, slots);
    if (clean) arena_touch(sb);
    superblock_format(sb, class);
    if (UNLIKELY(superblock_clears) && !clean) superblock_clear(sb, slots * (size_t)SUPERBLOCK);
    PROBE(superblock_new, sb, class);
    ASSERT(superblock_live(sb) == 0 && !superblock_has_pending(sb));
    return adopt(heap, sb, false);
}

static struct superblock *from_global(struct heap *heap, unsigned class)
{
    struct superblock *sb = global_heap_take(class, heap->id);
    if (sb == NULL) return NULL;
    ASSERT(sb->class == class && sb->role.owner == OWNER_NONE && sb->role.heap == HEAP_NONE);
    bool needs_notes = sb->role.sharing == SHARING_HELD && superblock_live(sb) != 0;
    if (needs_notes) false_sharing_begin(sb);
    __atomic_fetch_add(&heap->counts.transfers, 1, __ATOMIC_RELAXED);
    return adopt(heap, sb, needs_notes);
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

/* Puts a superblock into the row of a locked heap, if this thread still has the heap's id, and files the one
 * that was there; else files the superblock itself. The old one has no threshold until heap_file sets one.
 * heap_file then sees the blocks that were freed into it meanwhile. */
static bool exchange_active(struct heap *heap, struct superblock *old, struct superblock *sb)
{
    ASSERT(lock_is_mine(&heap->lock) && !list_holds(&sb->link)); /* sb may be old, displaced since */
    union superblock_role role = sb->role;
    role.regroup_at = HEAP_NEVER; /* it will be active */
    superblock_set_role(sb, role);
    bool done = heap_store(heap, heap_slot(heap, sb->class), heap_entry(old), heap_entry(sb)) == RSEQ_DONE;
    struct superblock *rest = done ? old : sb;
    if (rest != NULL) heap_file(heap, rest);
    heap_keep_invariant(heap);
    return done;
}

/* Puts an adopted superblock into the row, if the active one is used up: without the lock, unless a visitor
 * needs the row, or there is no rseq. Leaves the one not in the row to the lock's holder. */
static void place_in_row(struct heap *heap, struct superblock *sb)
{
    struct superblock *old = heap_active(heap, sb->class);
    ASSERT(old != sb && sb->role.heap == heap->id);
    enum rseq_result result = RSEQ_CHANGED;
    if (!heap_path_is_locked() && (old == NULL || !has_free(old)))
        result = rseq_store_unless(&heap->visited, heap->id, heap_slot(heap, sb->class), heap_entry(old),
                                   heap_entry(sb));
    if (result == RSEQ_DONE && old != NULL) displace(heap, old);
    if (result == RSEQ_MOVED) displace(heap, sb);
    if (result != RSEQ_CHANGED) return;
    lock_take(&heap->lock);
    old = heap_active(heap, sb->class);
    if (old == NULL || !has_free(old)) {
        exchange_active(heap, old, sb);
    } else {
        heap_file(heap, sb);
        heap_keep_invariant(heap);
    }
    heap_unlock(heap);
}

/* --- malloc ---------------------------------------------------------------------------------- */

static void count_slow(struct heap *heap, unsigned class)
{
    heap->counts.slow_mallocs++;
    PROBE(slow_malloc, heap->id, class, sizeclasses[class].size);
}

/* Collects what others have freed into the active superblock, if it is worth it, and the lock is free. */
static void *from_pending(struct heap *heap, unsigned class)
{
    struct superblock *sb = heap_active(heap, class);
    if (sb == NULL || !superblock_pending_is_worth(sb, class) || !lock_try(&heap->lock)) return NULL;
    count_slow(heap, class);
    if (heap_active(heap, class) == sb) heap_collect(heap, sb);
    heap_unlock(heap);
    return heap_pop(class);
}

static void *pop_active(struct heap *heap, unsigned class)
{
    if (heap_path_is_locked()) {
        struct superblock *sb = heap_active(heap, class);
        return sb != NULL ? superblock_pop(sb) : NULL;
    }
    void *block = heap_pop(class);
    return block != NULL ? block : heap_carve_one(class);
}

enum refill { REFILLED, MOVED /* this thread has another id now */, NOTHING };

/* Finds an active superblock with a free block on a locked heap. */
static enum refill refill(struct heap *heap, unsigned class)
{
    ASSERT(lock_is_mine(&heap->lock));
    struct superblock *old = heap_active(heap, class), *sb;
    if (old != NULL && !has_free(old) && !heap_collect(heap, old)) return MOVED;
    if (old != NULL && has_free(old)) return REFILLED; /* by remote frees, or another thread of this id */
    heap_file_displaced(heap);
    if (!heap_collect_queued(heap)) return MOVED;
    if ((sb = bin_fullest(&heap->bins[class], 1)) != NULL) {
        heap_bin_out(heap, sb);
    } else if ((sb = heap_empty_out(heap, sizeclasses[class].slots)) != NULL) {
        ASSERT(sb->role.owner == OWNER_NONE && superblock_live(sb) == 0);
        atomic_fetch_sub_explicit(&heap->slots, superblock_slots(sb), memory_order_relaxed);
        superblock_serve(sb, class);
        adopt(heap, sb, false);
    } else {
        return NOTHING;
    }
    ASSERT(sb->class == class);
    return exchange_active(heap, old, sb) ? REFILLED : MOVED;
}

void *heap_malloc_slow(unsigned class)
{
    ASSERT(class != 0 && class < CLASSES && sizeclasses[class].size != 0);
    const bool locked = heap_path_is_locked();
    struct heap *heap = heap_for_malloc();
    void *block = NULL;

    /* Without the heap's lock: what this id freed of another heap; what others freed into the active
     * superblock, whose memory was touched before; fresh blocks of it. */
    if (!locked && heap != NULL) {
        block = heap_batch_get(class);
        if (block == NULL) block = from_pending(heap, class);
        if (block == NULL) block = heap_carve(class);
    }

    while (block == NULL && heap != NULL) {
        /* Unless a stopped thread has the heap's lock. On the locked path all blocks come from here. */
        enum refill result = NOTHING;
        if (heap_lock_soon(heap)) {
            if (locked) block = pop_active(heap, class);
            if (block == NULL) {
                count_slow(heap, class);
                result = refill(heap, class);
                if (result == REFILLED) block = pop_active(heap, class);
            }
            heap_unlock(heap);
        }

        /* From a superblock of the global heap, to which others may give what they do not use, or of the
         * arenas. While the arenas have dirty slots that no one uses, no other heap is visited. */
        if (block == NULL && result == NOTHING) {
            gate_enter(&heap_transit);
            struct superblock *sb = from_global(heap, class);
            if (sb == NULL && !arena_has_unused(1) && heap_scavenge(heap)) sb = from_global(heap, class);
            if (sb == NULL) sb = from_arena(heap, class);
            if (sb != NULL) place_in_row(heap, sb);
            gate_leave(&heap_transit);
            arena_purge_if_due();
            heap_look_if_purged();
            if (sb == NULL) break;
            if (!locked) block = pop_active(heap, class);
        }
        if (!locked) heap = heap_for_malloc();
    }

    ASSERT(block == NULL || heap_is_block(block, class));
    if (block == NULL)
        errno = ENOMEM;
    else if (locked)
        *(uint64_t *)block = 0;
    return block;
}
