/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/heap_emptiness.h"

#include "arena/false_sharing.h"
#include "base/options.h"
#include "base/probe.h"
#include "heap/global_heap.h"
#include "heap/heap_remote.h"

/* --- restartable edits ----------------------------------------------------------------------- */

enum rseq_result heap_store(struct heap *heap, void *at, uint64_t expected, uint64_t value)
{
    ASSERT(lock_is_mine(&heap->lock));
    if (!heap_path_is_locked()) return rseq_store(heap->id, at, expected, value);
    __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE); /* the lock keeps all others out */
    return RSEQ_DONE;
}

/* Changes the role of an owned superblock. If this thread does not have the heap's id, a section or a free on
 * another CPU may still use the old role. It is over after the fence, and this thread then sees its count. */
static void change_role(struct heap *heap, struct superblock *sb, union superblock_role role)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.heap == heap->id);
    if (heap_store(heap, &sb->role.bits, sb->role.bits, role.bits) == RSEQ_DONE) return;
    superblock_set_role(sb, role);
    rseq_fence();
}

/* Makes an owned superblock unowned. */
static void detach(struct heap *heap, struct superblock *sb)
{
    union superblock_role role = sb->role;
    role.owner = OWNER_NONE;
    change_role(heap, sb, role);
    ASSERT(sb->role.owner == OWNER_NONE);
}

/* Puts a chain on the free list of an active or owned superblock, if this thread still has the heap's id. */
static bool splice_chain(struct heap *heap, struct superblock *sb, const struct chain *chain)
{
    ASSERT(chain->count != 0 && sb->role.heap == heap->id);
    enum rseq_result result;
    do {
        uint64_t word = word_read(sb);
        result = heap_store(heap, &sb->word, word, superblock_spliced(sb, word, chain));
    } while (result == RSEQ_CHANGED);
    return result == RSEQ_DONE;
}

/* Makes the heap the owner of a superblock that came here partly used, once its last foreign block is freed:
 * from now on its frees take the fast path. If this thread has another id now, the next look does it. */
static void own_superblock(struct heap *heap, struct superblock *sb)
{
    ASSERT(sb->role.sharing == SHARING_NOTES && sb->role.owner == OWNER_NONE);
    union superblock_role role = sb->role, owned = role;
    owned.sharing = SHARING_NONE;
    owned.owner = (uint16_t)heap_owner(heap);
    if (heap_store(heap, &sb->role.bits, role.bits, owned.bits) == RSEQ_DONE) false_sharing_end(sb);
}

/* The free of the last live block may not see that it is the last while others are between two lists. */
bool heap_collect(struct heap *heap, struct superblock *sb)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.heap == heap->id);
    struct chain chain = superblock_take_pending(sb);
    ASSERT(chain.count <= superblock_class(sb)->capacity);
    if (sb->role.sharing == SHARING_NOTES) chain = false_sharing_release(sb, &chain);
    bool done = chain.count == 0 || splice_chain(heap, sb, &chain);
    PROBE(pending_collected, sb, chain.count, done);
    if (!done) superblock_put_pending(sb, &chain);
    if (done && sb->role.sharing == SHARING_NOTES && false_sharing_is_over(sb)) own_superblock(heap, sb);
    if (superblock_live(sb) == 0 && superblock_has_pending(sb)) heap_enqueue(sb);
    return done;
}

/* --- bins, accounts, the invariant ----------------------------------------------------------- */

static void bin_in(struct heap *heap, struct superblock *sb, unsigned group)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.heap == heap->id && !heap_is_active(heap, sb));
    bin_add(&heap->bins[sb->class], sb, group);
    heap->with[group] |= (uint64_t)1 << sb->class;
    heap->free_eighths += group * superblock_slots(sb);
}

void heap_bin_out(struct heap *heap, struct superblock *sb)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.heap == heap->id);
    ASSERT(heap->with[sb->group] >> sb->class & 1 && heap->free_eighths >= sb->group * superblock_slots(sb));
    struct bin *bin = &heap->bins[sb->class];
    bin_remove(bin, sb);
    if ((bin->mask >> sb->group & 1) == 0) heap->with[sb->group] &= ~((uint64_t)1 << sb->class);
    heap->free_eighths -= sb->group * superblock_slots(sb);
}

static void empty_in(struct heap *heap, struct superblock *sb)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.owner == OWNER_NONE && !heap_is_active(heap, sb));
    false_sharing_forget(sb);
    superblock_absorb(sb);
    ASSERT(word_free(word_read(sb)) == superblock_class(sb)->capacity && sb->role.sharing == SHARING_NONE);
    list_push(&heap->empty[superblock_size_of(superblock_slots(sb))], &sb->link);
    sb->group = GROUP_EMPTY;
    heap->free_eighths += GROUP_EMPTY * superblock_slots(sb);
    atomic_fetch_add_explicit(&heap->empties, 1, memory_order_relaxed);
    arena_tell_purger();
}

struct superblock *heap_empty_out(struct heap *heap, unsigned slots)
{
    struct list_node *node = list_pop(&heap->empty[superblock_size_of(slots)]);
    if (node == NULL) return NULL;
    ASSERT(lock_is_mine(&heap->lock) && heap->free_eighths >= GROUP_EMPTY * slots);
    heap->free_eighths -= GROUP_EMPTY * slots;
    atomic_fetch_sub_explicit(&heap->empties, 1, memory_order_relaxed);
    heap->took_empty = true;
    return LIST_ENTRY(node, struct superblock, link);
}

struct superblock *heap_any_empty_out(struct heap *heap)
{
    struct superblock *sb = NULL;
    for (unsigned slots = SUPERBLOCK_SLOTS; sb == NULL && slots != 0; slots /= 2)
        sb = heap_empty_out(heap, slots);
    return sb;
}

/* The loop looks at the word again after the new threshold is set. A free either commits before this second
 * look, which sees it, or finds the new threshold itself. Nobody queues an active superblock again that was
 * taken off the queue: so if much is pending now, it is queued here. */
void heap_file(struct heap *heap, struct superblock *sb)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.heap == heap->id);
    ASSERT(!list_holds(&sb->link) && sb->link.next == NULL && !heap_is_active(heap, sb));
    unsigned group, at;
    do {
        group = superblock_group_of(sb, word_read(sb));
        if (group == GROUP_EMPTY) {
            detach(heap, sb);
            empty_in(heap, sb);
            return;
        }
        at = superblock_regroup_at(sb, group);
        union superblock_role role = sb->role;
        role.regroup_at = (uint16_t)at;
        change_role(heap, sb, role);
    } while (word_free(word_read(sb)) >= at);
    bin_in(heap, sb, group);
    if (superblock_pending_is_much(sb)) heap_enqueue(sb);
}

bool heap_holds_too_much(const struct heap *heap)
{
    return heap->free_eighths > GROUP_EMPTY * options.slack &&
           heap->free_eighths > options.empty_fraction * heap->slots;
}

/* The emptiest superblock that is at least f empty, off its list, unowned; or NULL. If the heap is alone, a
 * partly used superblock stays: no other heap wants it, and its frees would become remote frees. */
static struct superblock *take_emptiest(struct heap *heap)
{
    struct superblock *sb = heap_any_empty_out(heap);
    if (sb == NULL && heap_is_alone()) return NULL;
    for (unsigned group = GROUP_EMPTY; sb == NULL && group-- > options.empty_fraction;) {
        if (heap->with[group] == 0) continue;
        sb = bin_emptiest(&heap->bins[__builtin_ctzll(heap->with[group])]);
        heap_bin_out(heap, sb);
        detach(heap, sb);
    }
    ASSERT(sb == NULL || (sb->role.owner == OWNER_NONE && !list_holds(&sb->link)));
    return sb;
}

/* Gives a superblock, which is on no list any more, to the global heap. */
static void give_away(struct heap *heap, struct superblock *sb)
{
    ASSERT(heap->slots >= superblock_slots(sb));
    atomic_fetch_sub_explicit(&heap->slots, superblock_slots(sb), memory_order_relaxed);
    __atomic_fetch_add(&heap->counts.transfers, 1, __ATOMIC_RELAXED);
    global_heap_give(sb, heap->id);
}

bool heap_give_unused(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    const bool used = heap->took_empty;
    bool any = false;
    for (struct superblock *sb; !used && (sb = heap_any_empty_out(heap)) != NULL; any = true)
        give_away(heap, sb);
    heap->took_empty = false;
    return any;
}

size_t heap_keep_invariant(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    size_t n = 0;
    for (struct superblock *sb; heap_holds_too_much(heap) && (sb = take_emptiest(heap)) != NULL; n++) {
        heap->given = true;
        give_away(heap, sb);
    }
    ASSERT(!heap_holds_too_much(heap) || heap_is_alone() || heap->was_alone);
    return n;
}

/* One at a time, since the lock may pass to another thread between two calls. */
struct superblock *heap_displaced_out(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    struct list_node *node = atomic_load(&heap->displaced);
    while (node != NULL && !atomic_compare_exchange_weak(&heap->displaced, &node, node->next)) continue;
    if (node == NULL) return NULL;
    ASSERT(LIST_ENTRY(node, struct superblock, link)->role.heap == heap->id);
    node->next = NULL;
    return LIST_ENTRY(node, struct superblock, link);
}

void heap_file_displaced(struct heap *heap)
{
    if (LIKELY(atomic_load_explicit(&heap->displaced, memory_order_relaxed) == NULL)) return;
    for (struct superblock *sb; (sb = heap_displaced_out(heap)) != NULL;) heap_file(heap, sb);
    heap_keep_invariant(heap);
}

void heap_regroup_locked(struct heap *heap, struct superblock *sb)
{
    ASSERT(lock_is_mine(&heap->lock) && sb->role.heap == heap->id);
    if (!list_holds(&sb->link) || sb->group == GROUP_EMPTY) return;
    unsigned group = superblock_group_of(sb, word_read(sb));
    if (group <= sb->group) return;
    heap_bin_out(heap, sb);
    heap_file(heap, sb);
    heap_keep_invariant(heap);
}

/* --- superblocks queued to this thread's heap ------------------------------------------------ */

bool heap_collect_queued(struct heap *heap)
{
    ASSERT(lock_is_mine(&heap->lock));
    bool mine = true;
    struct superblock *next, *sb = heap_take_queued(heap);
    for (; sb != NULL; sb = next) {
        next = superblock_unqueue(sb);
        if (superblock_role(sb).heap != heap->id || (!list_holds(&sb->link) && !heap_is_active(heap, sb)))
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
    ASSERT(!lock_is_mine(&heap->lock));
    for (;;) {
        if (given) {
            if (!heap_path_is_locked() && heap_keep_nothing(heap->id)) atomic_store(&heap->deferred, true);
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

/* The holder looks at `deferred` after it gives the lock back; if it has just done so, the lock is free. */
void heap_defer(struct heap *heap)
{
    ASSERT(!lock_is_mine(&heap->lock));
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

/* --- checks ----------------------------------------------------------------------------------- */

/* While other threads run, sections change words and rows. Then the check leaves out words, and may count a
 * superblock twice that a thread displaces now: `slots` has the one that is active instead already. */
bool heap_adds_up(const struct heap *heap, bool others_run)
{
    struct bin_sums sums = {0, 0};
    for (unsigned class = 1; class < CLASSES; ++class) {
        const struct superblock *active = heap_active(heap, class);
        sums.slots += active != NULL ? superblock_slots(active) : 0;
        if (!bin_is_valid(&heap->bins[class], heap->id, class, active, !others_run, &sums)) return false;
        for (unsigned group = 0; group < GROUP_EMPTY; group++)
            if ((heap->with[group] >> class & 1) != (heap->bins[class].mask >> group & 1)) return false;
    }
    size_t empty = 0, empties = 0;
    for (unsigned slots = 1; slots <= SUPERBLOCK_SLOTS; slots *= 2) {
        const struct list_node *node = heap->empty[superblock_size_of(slots)].first;
        for (; node != NULL; node = node->next, empty += slots, empties++) {
            const struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
            if (sb->group != GROUP_EMPTY || sb->role.owner != OWNER_NONE || superblock_live(sb) != 0 ||
                superblock_slots(sb) != slots)
                return false;
        }
    }
    sums.slots += empty;
    sums.eighths += GROUP_EMPTY * empty;
    const struct list_node *displaced = atomic_load(&heap->displaced);
    for (; displaced != NULL; displaced = displaced->next)
        sums.slots += superblock_slots(LIST_ENTRY(displaced, struct superblock, link));
    if (sums.slots > heap->slots || sums.eighths != heap->free_eighths) return false;
    if (empties != heap->empties) return false;
    bool may_be_much = (heap_is_alone() || heap->was_alone) && empty == 0;
    return others_run || (sums.slots == heap->slots && (may_be_much || !heap_holds_too_much(heap)));
}

bool heap_is_valid(void)
{
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u))
        if (!heap_adds_up(heap, false)) return false;
    return global_heap_is_valid();
}
