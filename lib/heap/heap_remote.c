/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/heap_remote.h"

#include "arena/arena.h"
#include "base/kernel.h"
#include "base/report.h"

#include <string.h>

/* --- queues of superblocks ----------------------------------------------------------------------- */

_Atomic(struct superblock *) heap_global_queued;
_Atomic uint32_t heap_global_unseen;

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

static void push_queued(_Atomic(struct superblock *) *list, struct superblock *sb)
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
    push_queued(heap != NULL ? &heap->queued : &heap_global_queued, sb);
    count_unseen(heap != NULL ? &heap->unseen : &heap_global_unseen, superblock_slots(sb));
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
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u))
        enqueue_anew(&heap->queued);
    enqueue_anew(&heap_global_queued);
}

/* --- batches --------------------------------------------------------------------------------- */

/* Remote batches: blocks that a heap frees of others wait here, by class. So many blocks of one superblock
 * cost one atomic instruction, and take its descriptor from its owner's cache once. A block that shares no
 * cache lines with others also waits here for the next malloc of its class, so that a block that goes round
 * among threads does not go home each time. Of each class at most an eighth of a superblock waits, and at
 * most MOST blocks: of a larger batch many blocks are cold when it is delivered.
 *
 * Wide classes share no cache lines, and a superblock has few of their blocks: each second free would regroup
 * one, under the heap's lock. So an id keeps what it freed last, its own and others', for its next malloc:
 * of each class half a superblock at most, 3.9 MiB in all. What is freed beyond that goes home at once. A
 * kept block would hold back the rest of a superblock that is otherwise free: so a heap that has given
 * superblocks away keeps nothing, and of what it kept each superblock is queued. */
enum { MOST = 32 };
static const uint64_t ADDRESS = HEAP_BATCH_CLOSED - 1;

static unsigned blocks_in(uint64_t word) { return (unsigned)(word / HEAP_BATCH_ONE); }

static uint64_t *batch_of(unsigned id, unsigned class)
{
    ASSERT(id < IDS_MAX && class != 0 && class < CLASSES);
    return &heap_batches[id].of[class];
}

/* --- delivery -------------------------------------------------------------------------------- */

/* The blocks of a batch that is delivered, sorted by superblock; the table has room for SORTED of these. */
enum { SORTED = 32 };
struct sorted {
    struct superblock *sb;
    struct chain chain;
};

static void send_sorted(const struct sorted *sorted)
{
    if (sorted->sb == NULL) return;
    heap_make_pending(sorted->sb, &sorted->chain);
    if (sorted->sb->kind == SLOT_WIDE) heap_enqueue(sorted->sb);
}

static void sort_in(struct sorted *table, struct superblock *sb, void *block)
{
    struct sorted *sorted = &table[((uintptr_t)sb / sizeof *sb) % SORTED];
    struct chain chain = chain_of_block(sb, block);
    ASSERT(sorted->sb != sb || sorted->chain.count != 0);
    if (sorted->sb != sb) {
        send_sorted(sorted);
        *sorted = (struct sorted){sb, chain};
        return;
    }
    block_set_link(block, sorted->chain.first);
    sorted->chain.first = chain.first;
    sorted->chain.count++;
}

/* Superblocks of chunks have no inverse of their block size, so that free does not find chunks. */
static bool is_start(const struct superblock *sb, const void *block)
{
    if (sb->kind != SLOT_CHUNKS) return superblock_starts_at(sb, block);
    return (block_number(sb, block) - BLOCK_BIAS) % superblock_class(sb)->size == 0;
}

/* The superblock of a block in a batch. A program could write to the link that led to the block. */
static struct superblock *superblock_of(void *block, const void *before)
{
    struct arena *arena = pagemap_find(block);
    if (arena == NULL || arena->mapping != 0 || !is_start(arena_slot(arena, block), block))
        superblock_written((void *)(uintptr_t)before);
    if (!block_looks_free(block)) superblock_written(block);
    return arena_slot(arena, block);
}

static struct superblock *superblock_of_stub(struct stub *stub)
{
    struct arena *arena = pagemap_find(stub->block);
    struct superblock *sb = arena != NULL ? arena_wide(arena, stub->block) : NULL;
    if (sb == NULL || arena_stub_of(arena, sb, stub->block) != stub || !block_may_be_free(stub))
        superblock_written(stub);
    return sb;
}

static void deliver_batch(uint64_t word, unsigned class)
{
    const bool is_wide = sizeclass_is_wide(class);
    ASSERT(blocks_in(word) != 0 && blocks_in(word) <= MOST);
    struct sorted table[SORTED];
    memset(table, 0, sizeof table);
    char *block = (char *)(uintptr_t)(word & ADDRESS), *before = block;
    for (unsigned n = blocks_in(word); n != 0; n--) {
        struct superblock *sb =
            is_wide ? superblock_of_stub((struct stub *)(void *)block) : superblock_of(block, before);
        char *next = (char *)(uintptr_t)(*heap_batch_link(block, is_wide) ^ superblock_cookie);
        sort_in(table, sb, block);
        before = block;
        block = next;
    }
    for (unsigned i = 0; i < SORTED; i++) send_sorted(&table[i]);
}

static bool deliver_own_batch(unsigned id, unsigned class)
{
    uint64_t *at = batch_of(id, class), word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (word == 0 || (word & HEAP_BATCH_CLOSED) != 0) return false;
    if (rseq_store(id, at, word, 0) != RSEQ_DONE) return false;
    deliver_batch(word, class);
    return true;
}

bool heap_keep_nothing(unsigned id)
{
    bool any = false;
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; class ++) any |= deliver_own_batch(id, class);
    return any;
}

void heap_batch_deliver(void)
{
    unsigned id = rseq_id();
    for (unsigned class = 1; class < CLASSES; class ++) deliver_own_batch(id, class);
}

/* Sections do not touch a closed word. One that had read it before may still write; it is over after
 * the next fence. True: it has blocks. */
static bool close_word(uint64_t *at)
{
    uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (word != 0 && !__atomic_compare_exchange_n(at, &word, word | HEAP_BATCH_CLOSED, false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return word != 0;
}

/* Returns the word, or 0: it was empty, or a section wrote to it, and it is not closed any more. */
static uint64_t take_closed(uint64_t *at)
{
    uint64_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if ((word & HEAP_BATCH_CLOSED) == 0) return 0;
    ASSERT((word & ADDRESS) != 0);
    __atomic_store_n(at, 0, __ATOMIC_RELEASE);
    return word;
}

/* Of two threads that took batches at once, one could find a batch closed by the other, without a fence
 * since. This is no lock: its holder waits for the kernel, and others mostly go on without. */
static _Atomic bool taking;

static void take_all(struct heap *heap)
{
    uint64_t word;
    int left; /* words that were closed, and are not yet taken */
    do {
        left = 0;
        for (unsigned class = 1; class < CLASSES; class ++) left += close_word(batch_of(heap->id, class));
        if (left != 0) rseq_fence();
        for (unsigned class = 1; class < CLASSES; class ++) {
            if ((word = take_closed(batch_of(heap->id, class))) == 0) continue;
            deliver_batch(word, class);
            left--;
        }
    } while (left > 0);
}

void heap_batch_take(struct heap *heap)
{
    if (atomic_exchange(&taking, true)) return;
    take_all(heap);
    atomic_store(&taking, false);
}

/* A word that is the same as at the last look was not used since, or but for as many mallocs as frees of the
 * same blocks. Of its own id a thread takes it in a section: a fence is a call that a sandbox may forbid. */
static bool take_idle(struct heap *heap)
{
    const bool own = heap->id == rseq_id();
    bool any = false, closed = false;
    for (unsigned class = 1; class < CLASSES; class ++) {
        uint64_t *at = batch_of(heap->id, class), word = __atomic_load_n(at, __ATOMIC_RELAXED);
        bool idle = word != 0 && word == heap->kept[class];
        heap->kept[class] = word;
        if (!idle) continue;
        if (own)
            any |= deliver_own_batch(heap->id, class);
        else
            closed |= close_word(at);
    }
    if (closed) rseq_fence();
    for (unsigned class = 1; closed && class < CLASSES; class ++) {
        uint64_t word = take_closed(batch_of(heap->id, class));
        if (word == 0) continue;
        deliver_batch(word, class);
        any = true;
    }
    return any;
}

bool heap_take_idle(struct heap *heap)
{
    if (atomic_exchange(&taking, true)) return false;
    bool any = take_idle(heap);
    atomic_store(&taking, false);
    return any;
}

bool heap_keeps_any(void)
{
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) {
        if (atomic_load_explicit(&heap->empties, memory_order_relaxed) != 0 || heap->idle != 0) return true;
        for (unsigned class = 1; class < CLASSES; class ++)
            if (__atomic_load_n(batch_of(heap->id, class), __ATOMIC_RELAXED) != 0) return true;
    }
    return false;
}

void heap_deliver_all(void)
{
    gate_enter(&heap_transit);
    while (atomic_exchange(&taking, true)) KERNEL(SYS_sched_yield);
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u)) take_all(heap);
    atomic_store(&taking, false);
    gate_leave(&heap_transit);
}

/* --- put -------------------------------------------------------------------------------- */

bool heap_batch_put(struct superblock *sb, void *block)
{
    ASSERT(cpu.ids != 0 && superblock_has_number(sb, block_number(sb, block)));
    if (sb->kind == SLOT_WIDE) return heap_keep(sb, block);
    unsigned class = sb->class, eighth = superblock_class(sb)->capacity / 8;
    unsigned most = eighth < MOST ? eighth : MOST;
    if (most == 0) return false;
    for (;;) {
        unsigned id = rseq_id();
        uint64_t *at = batch_of(id, class), word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        ASSERT((word & HEAP_BATCH_CLOSED) != 0 || blocks_in(word) <= MOST);
        if ((word & HEAP_BATCH_CLOSED) != 0) return false;
        if (blocks_in(word) == most) {
            deliver_own_batch(id, class);
            continue;
        }
        block_set_link(block, 0);
        *heap_batch_link(block, false) = (word & ADDRESS) ^ superblock_cookie;
        uint64_t put = (uintptr_t)block | (blocks_in(word) + 1) * HEAP_BATCH_ONE;
        if (rseq_store(id, at, word, put) == RSEQ_DONE) break;
    }
    arena_tell_purger();
    return true;
}
