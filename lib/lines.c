#include "lines.h"

#include <string.h>

enum { BLOCKS_MAX = SUPERBLOCK / BLOCK_UNIT };

/* A bit per block of a superblock, by its index. */
struct blocks {
    uint64_t bits[BLOCKS_MAX / 64];
};

static unsigned index_of(const struct superblock *sb, unsigned number)
{
    return (number - BLOCK_BIAS) / superblock_class(sb)->size;
}

static bool has(const struct blocks *blocks, unsigned i) { return blocks->bits[i / 64] >> (i % 64) & 1; }

static unsigned next_in(const struct superblock *sb, unsigned number)
{
    return block_link(block_at(sb, number)) & 0xffff;
}

static void mark_chain(struct blocks *blocks, const struct superblock *sb, const struct chain *chain)
{
    unsigned number = chain->first;
    for (unsigned n = 0; n < chain->count; n++, number = next_in(sb, number)) {
        unsigned i = index_of(sb, number);
        blocks->bits[i / 64] |= (uint64_t)1 << (i % 64);
    }
}

/* Is every block free that has a byte in a line of block i? `end` is the first that was never carved. */
static bool lines_are_free(const struct blocks *blocks, unsigned size, unsigned i, unsigned end)
{
    unsigned from = i * size / LINE * LINE / size;
    unsigned to = ((i * size + size - 1) / LINE * LINE + LINE - 1) / size;
    for (unsigned j = from; j <= to && j < end; j++)
        if (!has(blocks, j)) return false;
    return true;
}

static void append(const struct superblock *sb, struct chain *chain, unsigned number)
{
    block_set_link(block_at(sb, number), 0);
    if (chain->count++ == 0)
        chain->first = number;
    else
        block_set_link(block_at(sb, chain->last), number);
    chain->last = number;
}

struct chain lines_take_whole(const struct superblock *sb, struct chain *chain)
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
    *chain = rest;
    return whole;
}

/* Carves the blocks that begin in the line in which the last carved one ends. */
static void carve_to_line(struct superblock *sb, struct chain *chain)
{
    const struct sizeclass *class = superblock_class(sb);
    uint64_t word = word_read(sb);
    unsigned start;
    while ((start = word_carve(word) - BLOCK_BIAS) % LINE != 0 && word_carve(word) <= class->carve_limit) {
        append(sb, chain, word_carve(word));
        word += class->carve_step;
    }
    __atomic_store_n(&sb->word, word, __ATOMIC_RELEASE);
}

void lines_hold_back(struct superblock *sb)
{
    superblock_absorb(sb);
    uint64_t word = word_read(sb);
    struct chain all = {0, 0, 0};
    for (unsigned number = word_first(word), next; number != 0; number = next) {
        next = next_in(sb, number);
        append(sb, &all, number);
    }
    __atomic_store_n(&sb->word, word - word_first(word) - ((uint64_t)all.count << 16), __ATOMIC_RELEASE);
    carve_to_line(sb, &all);

    struct chain whole = lines_take_whole(sb, &all);
    if (whole.count != 0)
        __atomic_store_n(&sb->word, superblock_spliced(sb, word_read(sb), &whole), __ATOMIC_RELEASE);
    if (all.count != 0) superblock_put_pending(sb, &all);
}
