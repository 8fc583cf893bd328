#include "arena.h"
#include "global.h"
#include "heap_state.h"
#include "lines.h"
#include "probe.h"

#include <errno.h>
#include <sched.h>

/* --- malloc ---------------------------------------------------------------------------------- */

/* Makes a quiet superblock this heap's. One with notes has no owner: its frees go to the pending list, and
 * heap_collect sees which of them may go. */
static struct superblock *adopt(struct heap *heap, struct superblock *sb, unsigned notes)
{
    superblock_set_role(
        sb, (union superblock_role){.owner = (uint16_t)(notes != 0 ? OWNER_NONE : heap_owner(heap)),
                                    .heap = heap->id,
                                    .regroup_at = HEAP_NEVER,
                                    .by_lines = (uint16_t)notes});
    heap->superblocks++;
    return sb;
}

/* Most classes never fill one superblock. So the first one of a class has no memory but what is carved: an
 * earlier life would have left it 64 KiB. */
static bool is_first(const struct heap *heap, unsigned class)
{
    return heap->bins[class].mask == 0 && *heap_slot(heap, class) == NULL;
}

/* It is sparse, too, as long as the class has no second one; and so are chunks: of a reap's first one, if the
 * reap is idle, one page is touched. */
static struct superblock *from_arena(struct heap *heap, unsigned class)
{
    bool clean, first = is_first(heap, class);
    enum superblock_kind kind = class >= CLASS_CHUNK ? SLOT_CHUNKS : SLOT_BLOCKS;
    struct superblock *sb = arena_take_slot(kind, first || kind == SLOT_CHUNKS, &clean);
    if (sb == NULL) return NULL;
    if (!clean && first) arena_refresh(sb);
    superblock_format(sb, class);
    PROBE(superblock_new, sb, class);
    return adopt(heap, sb, 0);
}

static struct superblock *from_empty(struct heap *heap, unsigned class)
{
    struct superblock *sb = heap_empty_out(heap);
    if (sb == NULL) return NULL;
    heap->superblocks--;
    if (is_first(heap, class)) arena_refresh(sb);
    superblock_serve(sb, class);
    return adopt(heap, sb, 0);
}

/* One with blocks of other heaps, if blocks share lines, is of no use without notes of them. */
static struct superblock *from_global(struct heap *heap, unsigned class)
{
    struct superblock *sb = global_take(class, heap->id, heap_post);
    if (sb == NULL) return NULL;
    bool needs_notes = sb->role.by_lines == BY_LINES_GLOBAL && superblock_live(sb) != 0;
    unsigned notes = needs_notes ? lines_begin(sb) : 0;
    if (needs_notes && notes == 0) {
        global_give(sb);
        return NULL;
    }
    heap->counts.transfers++;
    return adopt(heap, sb, notes);
}

/* A superblock with free blocks that is on no list: owned (from the bin), or quiet and new to the heap. */
static struct superblock *choose(struct heap *heap, unsigned class)
{
    struct superblock *sb = bin_fullest(&heap->bins[class], 1);
    if (sb != NULL) {
        heap_bin_out(heap, sb);
        return sb;
    }
    sb = from_empty(heap, class);
    if (sb == NULL) sb = from_global(heap, class);
    if (sb == NULL && heap_scavenge(heap)) sb = from_global(heap, class);
    return sb != NULL ? sb : from_arena(heap, class);
}

enum refill { REFILLED, RETRY, EXHAUSTED };

/* Exchanges the active superblock. The old one's threshold is set before it leaves the row: a free on
 * this id is either done before the exchange, and file sees it, or starts after it and sees the
 * threshold. */
static enum refill install(struct heap *heap, struct superblock *old, struct superblock *sb)
{
    superblock_set_regroup_at(sb, HEAP_NEVER);
    if (old != NULL) superblock_set_regroup_at(old, superblock_regroup_at(old, 0));
    enum cpu_result result =
        heap_store(heap, heap_slot(heap, sb->class), (uint64_t)(uintptr_t)old, (uint64_t)(uintptr_t)sb);
    if (result == CPU_DONE) {
        if (old != NULL) heap_file(heap, old);
        heap_keep_invariant(heap);
        return REFILLED;
    }
    if (old != NULL) superblock_set_regroup_at(old, HEAP_NEVER);
    heap_file(heap, sb);
    heap_keep_invariant(heap);
    return RETRY;
}

static bool has_free(const struct superblock *sb)
{
    uint64_t word = word_read(sb);
    return word_first(word) != 0 || word_carve(word) <= superblock_class(sb)->carve_limit;
}

static enum refill refill(struct heap *heap, unsigned class)
{
    struct superblock *old = *heap_slot(heap, class);
    if (old != NULL) {
        if (!has_free(old) && !heap_collect(heap, old)) return RETRY;
        if (has_free(old)) return REFILLED; /* by others' frees, or by another thread of this id */
    }
    if (!heap_collect_posted(heap)) return RETRY;
    struct superblock *sb = choose(heap, class);
    return sb != NULL ? install(heap, old, sb) : EXHAUSTED;
}

static void *pop_active(struct heap *heap, unsigned class)
{
    if (cpu.ids == 0) return superblock_pop(*heap_slot(heap, class));
    void *block = heap_pop(class);
    return block != NULL ? block : heap_carve(class);
}

/* On the locked path: not only when there is nothing left. */
static void *pop_locked(struct heap *heap, unsigned class)
{
    struct superblock *sb = cpu.ids == 0 ? *heap_slot(heap, class) : NULL;
    return sb != NULL ? superblock_pop(sb) : NULL;
}

void *heap_malloc_slow(unsigned class)
{
    void *block = cpu.ids != 0 ? heap_outbox_get(class) : NULL;
    if (block == NULL && cpu.ids != 0) block = heap_carve(class);
    enum refill result = RETRY;
    while (block == NULL && result != EXHAUSTED) {
        struct heap *heap = heap_lock_mine();
        if (heap == NULL) break;
        block = pop_locked(heap, class);
        if (block == NULL) {
            heap->counts.slow_mallocs++;
            PROBE(slow_malloc, heap->id, class, sizeclasses[class].size);
            result = refill(heap, class);
            if (result == REFILLED) block = pop_active(heap, class);
        }
        lock_give(&heap->lock);
    }
    if (block == NULL)
        errno = ENOMEM;
    else if (cpu.ids == 0)
        *(uint64_t *)block = 0;
    return block;
}

/* --- free ------------------------------------------------------------------------------------ */

static void free_locked(struct superblock *sb, void *block)
{
    for (;;) {
        struct heap *heap = heap_lock_of(sb);
        if (heap == NULL) {
            if (global_free(sb, block)) return;
            sched_yield(); /* it is on its way to a heap */
            continue;
        }
        bool due = superblock_free_quiet(sb, block);
        if (due && sb->role.by_lines) heap_collect(heap, sb);
        if (due) heap_regroup_locked(heap, sb);
        heap->counts.slow_frees += due;
        if (superblock_live(sb) == 0 && heap_is_active(heap, sb) && heap != heap_mine()) heap_post(sb);
        lock_give(&heap->lock);
        return;
    }
}

void heap_free_slow(struct superblock *sb, void *block)
{
    if (cpu.ids == 0) {
        free_locked(sb, block);
        return;
    }
    PROBE(remote_free, block, sb);
    struct heap *mine = heap_mine();
    if (mine != NULL) {
        mine->counts.remote_frees++;
        if (heap_outbox_put(sb, block)) return;
    }
    struct chain chain = chain_of_block(sb, block);
    heap_make_pending(sb, &chain);
}

bool heap_block_is_free(struct superblock *sb, void *block)
{
    heap_deliver_all();
    struct heap *heap = heap_lock_of(sb);
    if (heap == NULL) return global_has_free(sb, block);
    unsigned owner = sb->role.owner;
    if (owner != OWNER_NONE) {
        superblock_set_owner(sb, OWNER_NONE);
        cpu_fence();
    }
    struct superblock **slot = heap_slot(heap, sb->class);
    bool active = *slot == sb;
    if (active && cpu.ids != 0) { /* mallocs go on in the row */
        __atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
        cpu_fence();
    }
    bool is_free = superblock_has_free(sb, block) || lines_hold(sb, block);
    if (owner != OWNER_NONE) superblock_set_owner(sb, owner);
    if (active) __atomic_store_n(slot, sb, __ATOMIC_RELEASE);
    lock_give(&heap->lock);
    return is_free;
}
