/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/false_sharing.h"

#include "os/metadata.h"

#include <string.h>

enum { BLOCKS_MAX = SUPERBLOCK / BLOCK_UNIT };

/* A bit for each block of a superblock, by the block's index. */
struct blocks {
    uint64_t bits[BLOCKS_MAX / 64];
};

static unsigned index_of(const struct superblock *sb, unsigned number)
{
    ASSERT(number >= BLOCK_BIAS && (number - BLOCK_BIAS) % superblock_class(sb)->size == 0);
    return (unsigned)((uint64_t)(number - BLOCK_BIAS) * superblock_class(sb)->inverse >> 32);
}

static bool has(const struct blocks *blocks, unsigned i)
{
    ASSERT(i < BLOCKS_MAX);
    return blocks->bits[i / 64] >> (i % 64) & 1;
}

static void set(struct blocks *blocks, unsigned i)
{
    ASSERT(!has(blocks, i));
    blocks->bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static void clear(struct blocks *blocks, unsigned i)
{
    ASSERT(has(blocks, i));
    blocks->bits[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static unsigned next_in(const struct superblock *sb, unsigned number)
{
    return block_link(block_at(sb, number)) & 0xffff;
}

static void mark_chain(struct blocks *blocks, const struct superblock *sb, const struct chain *chain)
{
    unsigned number = chain->first;
    for (unsigned n = 0; n < chain->count; n++, number = next_in(sb, number))
        set(blocks, index_of(sb, number));
}

/* The blocks that have a byte in a cache line of block i. */
struct neighbours {
    unsigned from, to;
};

static struct neighbours neighbours_of(unsigned size, unsigned i)
{
    ASSERT(size % BLOCK_UNIT == 0 && i * size < SUPERBLOCK);
    return (struct neighbours){i * size / LINE * LINE / size,
                               ((i * size + size - 1) / LINE * LINE + LINE - 1) / size};
}

/* Returns true if all blocks on the lines of block i are free. `end` is the first block that was never
 * carved. */
static bool lines_are_free(const struct blocks *blocks, unsigned size, unsigned i, unsigned end)
{
    struct neighbours near = neighbours_of(size, i);
    for (unsigned j = near.from; j <= near.to && j < end; j++)
        if (!has(blocks, j)) return false;
    return true;
}

static void append(const struct superblock *sb, struct chain *chain, unsigned number)
{
    ASSERT(superblock_has_number(sb, number) && chain->count < superblock_class(sb)->capacity);
    block_set_link(block_at(sb, number), 0);
    if (chain->count++ == 0)
        chain->first = number;
    else
        block_set_link(block_at(sb, chain->last), number);
    chain->last = number;
}

/* Asks for all carved lines. Their blocks were freed on another CPU, in any order: to follow their links
 * would mean to wait for one line after the other. */
static void ask_for_lines(const struct superblock *sb)
{
    unsigned carved = word_carve(word_read(sb)) - BLOCK_BIAS;
    for (unsigned at = 0; at < carved; at += LINE) __builtin_prefetch(block_at(sb, at + BLOCK_BIAS), 1);
}

/* Takes those blocks out of a chain whose lines hold only blocks of the chain and blocks never carved. */
static struct chain take_whole(const struct superblock *sb, struct chain *chain)
{
    struct blocks blocks = {{0}};
    struct chain whole = {0, 0, 0}, rest = {0, 0, 0};
    unsigned end = index_of(sb, word_carve(word_read(sb))), number = chain->first, next;
    mark_chain(&blocks, sb, chain);
    for (unsigned n = 0; n < chain->count; n++, number = next) {
        next = next_in(sb, number);
        bool may_go = lines_are_free(&blocks, superblock_class(sb)->size, index_of(sb, number), end);
        append(sb, may_go ? &whole : &rest, number);
    }
    ASSERT(whole.count + rest.count == chain->count);
    *chain = rest;
    return whole;
}

/* Carves the blocks that begin in the line where the last carved block ends. */
static void carve_to_line(struct superblock *sb, struct chain *chain)
{
    const struct sizeclass *class = superblock_class(sb);
    uint64_t word = word_read(sb);
    unsigned start;
    while ((start = word_carve(word) - BLOCK_BIAS) % LINE != 0 && word_carve(word) <= class->carve_limit) {
        append(sb, chain, word_carve(word));
        word += class->carve_step;
    }
    ASSERT(word_free(word) <= class->capacity);
    __atomic_store_n(&sb->word, word, __ATOMIC_RELEASE);
}

void false_sharing_hold_back(struct superblock *sb)
{
    ASSERT(sb->role.owner == OWNER_NONE);
    superblock_absorb(sb);
    ask_for_lines(sb);
    uint64_t word = word_read(sb);
    struct chain all = {0, 0, 0};
    for (unsigned number = word_first(word), next; number != 0; number = next) {
        next = next_in(sb, number);
        append(sb, &all, number);
    }
    __atomic_store_n(&sb->word, word - word_first(word) - ((uint64_t)all.count << 16), __ATOMIC_RELEASE);
    ASSERT(all.count <= word_free(word));
    carve_to_line(sb, &all);

    struct chain whole = take_whole(sb, &all);
    if (whole.count != 0)
        __atomic_store_n(&sb->word, superblock_spliced(sb, word_read(sb), &whole), __ATOMIC_RELEASE);
    if (all.count != 0) superblock_put_pending(sb, &all);
}

/* --- notes ----------------------------------------------------------------------------------- */

struct notes {
    struct blocks foreign, waiting;
    unsigned foreign_blocks, waiting_blocks;
    _Atomic unsigned next_unused; /* number; stays: a thread that came too late to pop reads it */
};

/* Notes have numbers from 1. They lie in metadata, 32 together, and are used again, never given back. */
enum { NOTES_TOGETHER = 32, NOTES_MAX = SHARING_NOTES_GLOBAL - 1 };
static SPARSE _Atomic(struct notes *) notes_table[NOTES_MAX / NOTES_TOGETHER + 1];
static _Atomic unsigned notes_made;
static _Atomic uint64_t notes_unused; /* first number : 32 | changes : 32 */

static struct notes *notes_at(unsigned number)
{
    ASSERT(number != 0 && number <= NOTES_MAX && atomic_load(&notes_table[number / NOTES_TOGETHER]) != NULL);
    return &atomic_load_explicit(&notes_table[number / NOTES_TOGETHER],
                                 memory_order_acquire)[number % NOTES_TOGETHER];
}

static struct notes *notes_of(const struct superblock *sb) { return notes_at(sb->role.sharing_notes); }

static unsigned pop_unused(void)
{
    uint64_t old = atomic_load(&notes_unused), new;
    do {
        if ((uint32_t)old == 0) return 0;
        new = ((old >> 32) + 1) << 32 |
              atomic_load_explicit(&notes_at((uint32_t)old)->next_unused, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak(&notes_unused, &old, new));
    return (uint32_t)old;
}

static void push_unused(unsigned number)
{
    uint64_t old = atomic_load(&notes_unused), new;
    do {
        atomic_store_explicit(&notes_at(number)->next_unused, (unsigned)old, memory_order_relaxed);
        new = ((old >> 32) + 1) << 32 | number;
    } while (!atomic_compare_exchange_weak(&notes_unused, &old, new));
}

/* Makes room for notes of this number. If two threads make it at once, the later one's is lost. */
static bool has_room(unsigned number)
{
    _Atomic(struct notes *) *place = &notes_table[number / NOTES_TOGETHER];
    if (atomic_load(place) != NULL) return true;
    struct notes *room = metadata_alloc(NOTES_TOGETHER * sizeof *room), *nobodys = NULL;
    if (room != NULL) atomic_compare_exchange_strong(place, &nobodys, room);
    return atomic_load(place) != NULL;
}

static unsigned new_number(void)
{
    unsigned made = atomic_load(&notes_made);
    do
        if (made == NOTES_MAX || !has_room(made + 1)) return 0;
    while (!atomic_compare_exchange_weak(&notes_made, &made, made + 1));
    ASSERT(made < NOTES_MAX);
    return made + 1;
}

unsigned false_sharing_begin(const struct superblock *sb)
{
    unsigned number = pop_unused();
    if (number == 0) number = new_number();
    if (number == 0) return 0;
    struct notes *notes = notes_at(number);
    memset(notes, 0, offsetof(struct notes, next_unused));
    uint64_t word = word_read(sb);
    unsigned carved = index_of(sb, word_carve(word));
    ASSERT(carved <= superblock_class(sb)->capacity);
    for (unsigned i = 0; i < carved; i++) set(&notes->foreign, i);
    notes->foreign_blocks = carved;
    for (unsigned at = word_first(word); at != 0; at = next_in(sb, at), notes->foreign_blocks--)
        clear(&notes->foreign, index_of(sb, at));
    ASSERT(notes->foreign_blocks <= carved && notes->waiting_blocks == 0);
    return number;
}

static bool may_go(const struct notes *notes, unsigned size, unsigned i)
{
    struct neighbours near = neighbours_of(size, i);
    for (unsigned j = near.from; j <= near.to; j++)
        if (j < BLOCKS_MAX && has(&notes->foreign, j)) return false;
    return true;
}

/* Releases the waiting blocks beside block i, which was foreign and is free now, unless another foreign block
 * holds them. */
static void let_go_near(struct superblock *sb, struct notes *notes, unsigned i, struct chain *gone)
{
    unsigned size = superblock_class(sb)->size;
    struct neighbours near = neighbours_of(size, i);
    for (unsigned j = near.from; j <= near.to && j < BLOCKS_MAX; j++) {
        if (!has(&notes->waiting, j) || !may_go(notes, size, j)) continue;
        clear(&notes->waiting, j);
        ASSERT(notes->waiting_blocks != 0);
        notes->waiting_blocks--;
        append(sb, gone, j * size + BLOCK_BIAS);
    }
}

struct chain false_sharing_release(struct superblock *sb, const struct chain *freed)
{
    struct notes *notes = notes_of(sb);
    struct chain gone = {0, 0, 0};
    unsigned waited = notes->waiting_blocks, number = freed->first, next;
    for (unsigned n = 0; n < freed->count; n++, number = next) {
        next = next_in(sb, number);
        unsigned i = index_of(sb, number);
        if (!has(&notes->foreign, i)) {
            append(sb, &gone, number);
            continue;
        }
        clear(&notes->foreign, i);
        ASSERT(notes->foreign_blocks != 0);
        notes->foreign_blocks--;
        set(&notes->waiting, i);
        notes->waiting_blocks++;
        let_go_near(sb, notes, i, &gone);
    }
    ASSERT(notes->waiting_blocks <= superblock_class(sb)->capacity);
    superblock_add_waiting(sb, (int)notes->waiting_blocks - (int)waited);
    ASSERT(superblock_waiting(sb) == notes->waiting_blocks);
    return gone;
}

bool false_sharing_is_over(const struct superblock *sb) { return notes_of(sb)->foreign_blocks == 0; }

static bool is_number(unsigned sharing_notes)
{
    return sharing_notes != 0 && sharing_notes != SHARING_NOTES_GLOBAL;
}

bool false_sharing_holds(const struct superblock *sb, const void *block)
{
    unsigned number = sb->role.sharing_notes;
    return is_number(number) &&
           has(&notes_at(number)->waiting, index_of(sb, (unsigned)block_number(sb, block)));
}

void false_sharing_end(struct superblock *sb, unsigned number)
{
    struct notes *notes = notes_at(number);
    struct chain rest = {0, 0, 0};
    for (unsigned i = 0; notes->waiting_blocks != 0; i++) {
        ASSERT(i < BLOCKS_MAX);
        if (!has(&notes->waiting, i)) continue;
        append(sb, &rest, i * superblock_class(sb)->size + BLOCK_BIAS);
        notes->waiting_blocks--;
    }
    if (rest.count != 0) {
        superblock_add_waiting(sb, -(int)rest.count);
        superblock_put_pending(sb, &rest);
    }
    push_unused(number);
}

void false_sharing_forget(struct superblock *sb)
{
    union superblock_role role = sb->role;
    unsigned number = role.sharing_notes;
    if (!is_number(number)) return;
    role.sharing_notes = 0;
    superblock_set_role(sb, role);
    false_sharing_end(sb, number);
}
