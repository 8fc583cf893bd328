/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/false_sharing.h"

#include "arena/arena.h"
#include "base/bitmap.h"

#include <string.h>

static unsigned index_of(const struct superblock *sb, unsigned number)
{
    ASSERT(number >= BLOCK_BIAS && (number - BLOCK_BIAS) % superblock_class(sb)->size == 0);
    return (unsigned)((uint64_t)(number - BLOCK_BIAS) * superblock_class(sb)->inverse >> 32);
}

static unsigned next_in(const struct superblock *sb, unsigned number)
{
    return block_link(block_at(sb, number)) & 0xffff;
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

/* Returns true if all blocks on the lines of block i are free. `end` is the first one never carved. */
static bool lines_are_free(const uint64_t *free, unsigned size, unsigned i, unsigned end)
{
    struct neighbours near = neighbours_of(size, i);
    for (unsigned j = near.from; j <= near.to && j < end; j++)
        if (!bitmap_get(free, j)) return false;
    return true;
}

static void append_block(const struct superblock *sb, struct chain *chain, unsigned number)
{
    ASSERT(superblock_has_number(sb, number) && chain->count < superblock_class(sb)->capacity);
    block_set_link(block_at(sb, number), 0);
    if (chain->count++ == 0)
        chain->first = number;
    else
        block_set_link(block_at(sb, chain->last), number);
    chain->last = number;
}

/* Takes those blocks out of a chain whose lines hold only blocks of the chain and blocks never carved. */
static struct chain take_whole(const struct superblock *sb, struct chain *chain)
{
    uint64_t free[SUPERBLOCK_BLOCKS / 64] = {0};
    struct chain whole = {0, 0, 0}, rest = {0, 0, 0};
    unsigned end = index_of(sb, word_carve(word_read(sb))), number = chain->first, next;
    for (unsigned n = 0; n < chain->count; n++, number = next_in(sb, number)) {
        ASSERT(!bitmap_get(free, index_of(sb, number)));
        bitmap_set(free, index_of(sb, number));
    }
    number = chain->first;
    for (unsigned n = 0; n < chain->count; n++, number = next) {
        next = next_in(sb, number);
        bool may_go = lines_are_free(free, superblock_class(sb)->size, index_of(sb, number), end);
        append_block(sb, may_go ? &whole : &rest, number);
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
        append_block(sb, chain, word_carve(word));
        word += class->carve_step;
    }
    ASSERT(word_free(word) <= class->capacity);
    __atomic_store_n(&sb->word, word, __ATOMIC_RELEASE);
}

/* It asks for all carved lines first. Their blocks were freed on another CPU, in any order: to follow their
 * links would mean to wait for one line after the other. */
void false_sharing_hold_back(struct superblock *sb)
{
    ASSERT(sb->role.owner == OWNER_NONE);
    superblock_absorb(sb);
    uint64_t word = word_read(sb);
    for (unsigned at = BLOCK_BIAS; at < word_carve(word); at += LINE) __builtin_prefetch(block_at(sb, at), 1);
    struct chain all = {0, 0, 0};
    for (unsigned number = word_first(word), next; number != 0; number = next) {
        next = next_in(sb, number);
        append_block(sb, &all, number);
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

static struct sharing_notes *notes_of(const struct superblock *sb)
{
    struct arena *arena = pagemap_find(slot_start(sb));
    return &arena->notes[sb - arena->slots];
}

void false_sharing_begin(const struct superblock *sb)
{
    struct sharing_notes *notes = notes_of(sb);
    uint64_t word = word_read(sb);
    unsigned carved = index_of(sb, word_carve(word));
    ASSERT(carved <= superblock_class(sb)->capacity);
    memset(notes, 0, sizeof *notes);
    for (unsigned i = 0; i < carved; i++) bitmap_set(notes->foreign, i);
    notes->foreign_blocks = carved;
    for (unsigned at = word_first(word); at != 0; at = next_in(sb, at), notes->foreign_blocks--) {
        ASSERT(bitmap_get(notes->foreign, index_of(sb, at)));
        bitmap_clear(notes->foreign, index_of(sb, at));
    }
    ASSERT(notes->foreign_blocks <= carved && notes->waiting_blocks == 0);
}

static bool has_no_foreign(const struct sharing_notes *notes, unsigned size, unsigned i)
{
    struct neighbours near = neighbours_of(size, i);
    for (unsigned j = near.from; j <= near.to; j++)
        if (j < SUPERBLOCK_BLOCKS && bitmap_get(notes->foreign, j)) return false;
    return true;
}

/* Releases the blocks that wait for block i, which was foreign and is free now, and for no other one. */
static void let_go_near(struct superblock *sb, struct sharing_notes *notes, unsigned i, struct chain *gone)
{
    unsigned size = superblock_class(sb)->size;
    struct neighbours near = neighbours_of(size, i);
    for (unsigned j = near.from; j <= near.to && j < SUPERBLOCK_BLOCKS; j++) {
        if (!bitmap_get(notes->waiting, j) || !has_no_foreign(notes, size, j)) continue;
        bitmap_clear(notes->waiting, j);
        ASSERT(notes->waiting_blocks != 0);
        notes->waiting_blocks--;
        append_block(sb, gone, j * size + BLOCK_BIAS);
    }
}

struct chain false_sharing_release(struct superblock *sb, const struct chain *freed)
{
    struct sharing_notes *notes = notes_of(sb);
    struct chain gone = {0, 0, 0};
    unsigned waited = notes->waiting_blocks, number = freed->first, next;
    for (unsigned n = 0; n < freed->count; n++, number = next) {
        next = next_in(sb, number);
        unsigned i = index_of(sb, number);
        if (!bitmap_get(notes->foreign, i)) {
            append_block(sb, &gone, number);
            continue;
        }
        bitmap_clear(notes->foreign, i);
        ASSERT(notes->foreign_blocks != 0);
        notes->foreign_blocks--;
        ASSERT(!bitmap_get(notes->waiting, i));
        bitmap_set(notes->waiting, i);
        notes->waiting_blocks++;
        let_go_near(sb, notes, i, &gone);
    }
    ASSERT(notes->waiting_blocks <= superblock_class(sb)->capacity);
    superblock_add_waiting(sb, (int)notes->waiting_blocks - (int)waited);
    ASSERT(superblock_waiting(sb) == notes->waiting_blocks);
    return gone;
}

bool false_sharing_is_over(const struct superblock *sb) { return notes_of(sb)->foreign_blocks == 0; }

bool false_sharing_holds(const struct superblock *sb, const void *block)
{
    return sb->role.sharing == SHARING_NOTES &&
           bitmap_get(notes_of(sb)->waiting, index_of(sb, (unsigned)block_number(sb, block)));
}

void false_sharing_end(struct superblock *sb)
{
    struct sharing_notes *notes = notes_of(sb);
    struct chain rest = {0, 0, 0};
    for (unsigned i = 0; notes->waiting_blocks != 0; i++) {
        ASSERT(i < SUPERBLOCK_BLOCKS);
        if (!bitmap_get(notes->waiting, i)) continue;
        append_block(sb, &rest, i * superblock_class(sb)->size + BLOCK_BIAS);
        notes->waiting_blocks--;
    }
    if (rest.count == 0) return;
    superblock_add_waiting(sb, -(int)rest.count);
    superblock_put_pending(sb, &rest);
}

void false_sharing_forget(struct superblock *sb)
{
    union superblock_role role = sb->role;
    if (role.sharing != SHARING_NOTES) return;
    role.sharing = SHARING_NONE;
    superblock_set_role(sb, role);
    false_sharing_end(sb);
}
