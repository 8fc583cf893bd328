#include "arena.h"
#include "heap_state.h"

#include <string.h>

/* Blocks that a heap frees of others wait here, so that 64 of a superblock cost one atomic instruction and
 * take its descriptor from its owner once.
 *
 * An outbox's word: the first block's address : 48 | closed : 1 | blocks : 15. A block in it looks free,
 * as one on a list of its superblock does; its second eight bytes lead to the next block, disguised. */
enum { BLOCKS_SHIFT = 49, OUTBOX_MAX = 64 /* blocks */, OUTBOX_SIZE_MAX = 1024 /* bytes of a block */ };
static const uint64_t CLOSED = (uint64_t)1 << 48;
static const uint64_t ADDRESS = ((uint64_t)1 << 48) - 1;

static uint64_t *outbox_of(unsigned id) { return &heap_rows[id].outbox; }

static uint64_t outbox_read(unsigned id) { return __atomic_load_n(outbox_of(id), __ATOMIC_ACQUIRE); }

static uint64_t *link_of(void *block) { return (uint64_t *)block + 1; }

/* --- out of it ------------------------------------------------------------------------------- */

/* What leaves an outbox, by superblocks: so many are looked after at a time. */
enum { SORTED = 32 };
struct sorted {
    struct superblock *sb;
    struct chain chain;
};

static void send(const struct sorted *sorted)
{
    if (sorted->sb != NULL) heap_make_pending(sorted->sb, &sorted->chain);
}

static void sort_in(struct sorted *table, struct superblock *sb, void *block)
{
    struct sorted *sorted = &table[((uintptr_t)sb / sizeof *sb) % SORTED];
    struct chain chain = chain_of_block(sb, block);
    if (sorted->sb != sb) {
        send(sorted);
        *sorted = (struct sorted){sb, chain};
        return;
    }
    block_set_link(block, sorted->chain.first);
    sorted->chain.first = chain.first;
    sorted->chain.count++;
}

/* The superblock of a block in an outbox. The link that led to it was where a program could write to. */
static struct superblock *superblock_of(void *block, const void *before)
{
    struct arena *arena = map_find(block);
    if (arena == NULL || arena->mapping != 0 || !superblock_starts_at(arena_slot(arena, block), block))
        superblock_written((void *)(uintptr_t)before);
    return arena_slot(arena, block);
}

static void deliver(uint64_t word)
{
    struct sorted table[SORTED];
    memset(table, 0, sizeof table);
    char *block = (char *)(uintptr_t)(word & ADDRESS), *before = block;
    for (unsigned n = (unsigned)(word >> BLOCKS_SHIFT); n != 0; n--) {
        struct superblock *sb = superblock_of(block, before);
        if (!block_looks_free(block)) superblock_written(block);
        char *next = (char *)(uintptr_t)(*link_of(block) ^ superblock_cookie);
        sort_in(table, sb, block);
        before = block;
        block = next;
    }
    for (unsigned i = 0; i < SORTED; i++) send(&table[i]);
}

void heap_outbox_deliver(void)
{
    unsigned id = cpu_id();
    uint64_t word = outbox_read(id);
    if (word == 0 || (word & CLOSED) != 0) return;
    if (cpu_store(id, outbox_of(id), word, 0) == CPU_DONE) deliver(word);
}

/* Closed first, so that sections leave it alone; one that had read it before may still write, and is over
 * after the fence. */
void heap_outbox_take(struct heap *heap)
{
    uint64_t *outbox = outbox_of(heap->id), word;
    while ((word = outbox_read(heap->id)) != 0) {
        uint64_t expected = word;
        if (!__atomic_compare_exchange_n(outbox, &expected, word | CLOSED, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        cpu_fence();
        if (outbox_read(heap->id) != (word | CLOSED)) continue;
        __atomic_store_n(outbox, 0, __ATOMIC_RELEASE);
        deliver(word);
    }
}

void heap_deliver_all(void)
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) {
        if (outbox_read(heap->id) == 0) continue;
        lock_take(&heap->lock);
        heap_outbox_take(heap);
        lock_give(&heap->lock);
    }
}

/* --- into it --------------------------------------------------------------------------------- */

bool heap_outbox_put(struct superblock *sb, void *block)
{
    if (superblock_class(sb)->size > OUTBOX_SIZE_MAX) return false;
    for (;;) {
        unsigned id = cpu_id();
        uint64_t word = outbox_read(id);
        if ((word & CLOSED) != 0) return false;
        if (word >> BLOCKS_SHIFT == OUTBOX_MAX) {
            heap_outbox_deliver();
            continue;
        }
        block_set_link(block, 0);
        *link_of(block) = (word & ADDRESS) ^ superblock_cookie;
        uint64_t put = (uintptr_t)block | ((word >> BLOCKS_SHIFT) + 1) << BLOCKS_SHIFT;
        if (cpu_store(id, outbox_of(id), word, put) == CPU_DONE) return true;
    }
}
