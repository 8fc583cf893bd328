/* SPDX-License-Identifier: Apache-2.0 */
/* check_superblock.c: one superblock at a time. */
#include "support/check_backend.h"

#include "base/options.h"

enum { CAPACITY_MAX = SUPERBLOCK / BLOCK_UNIT };

static struct superblock sb;
static char *memory;
static void *blocks[CAPACITY_MAX + 1];

static void setup(void)
{
    sizeclass_init();
    superblock_init();
    memory = aligned_alloc(SUPERBLOCK, SUPERBLOCK);
    memset(memory, 0x5a, SUPERBLOCK);
}

static unsigned format(unsigned c)
{
    bool wide = sizeclass_is_wide(c); /* its stubs are in `memory`, and its blocks nowhere */
    sb = (struct superblock){.origin = memory - BLOCK_BIAS,
                             .free_origin = memory - BLOCK_BIAS,
                             .role = {.owner = OWNER_NONE},
                             .kind = wide ? SLOT_WIDE : SLOT_BLOCKS};
    superblock_format(&sb, c);
    return sizeclasses[c].capacity;
}

static void pop_all(unsigned n)
{
    unsigned given = 0;
    for (unsigned i = 0; i < n; i++) given += (blocks[i] = superblock_pop(&sb)) != NULL;
    ck_assert_uint_eq(given, n);
}

static int compare_addresses(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

/* Holds that blocks[0..n) are the blocks of the class, each once. */
static bool are_all_blocks(unsigned c, unsigned n)
{
    qsort(blocks, n, sizeof blocks[0], compare_addresses);
    bool are = n == sizeclasses[c].capacity;
    for (unsigned i = 0; i < n; i++)
        are = are && (char *)blocks[i] == memory + (size_t)i * sizeclass_step(&sizeclasses[c]);
    return are;
}

/* --- a superblock ---------------------------------------------------------------------------- */

TEST(gives_each_block_once_and_takes_it_back)
{
    uint64_t random = random_seed();
    for (unsigned c = 1; c < CLASSES; c++) {
        if (sizeclasses[c].size == 0) continue;
        unsigned capacity = format(c);
        for (unsigned round = 0; round < 3; round++) {
            ck_assert_uint_eq(word_free(word_read(&sb)), capacity);
            pop_all(capacity);
            ck_assert_ptr_null(superblock_pop(&sb));
            ck_assert_uint_eq(superblock_live(&sb), capacity);
            ck_assert(superblock_is_valid(&sb));
            ck_assert(are_all_blocks(c, capacity));
            unsigned wrong = 0;
            for (unsigned left = capacity; left > 0; left--) { /* back in any order */
                unsigned i = random_below(&random, left);
                wrong += superblock_push(&sb, blocks[i]) != capacity - left + 1;
                blocks[i] = blocks[left - 1];
            }
            ck_assert_uint_eq(wrong, 0);
            ck_assert_uint_eq(superblock_live(&sb), 0);
            ck_assert(superblock_is_valid(&sb));
        }
    }
}

TEST(the_last_freed_is_the_first_given)
{
    format(3);
    pop_all(10);
    superblock_push(&sb, blocks[4]);
    superblock_push(&sb, blocks[7]);
    ck_assert_ptr_eq(superblock_pop(&sb), blocks[7]);
    ck_assert_ptr_eq(superblock_pop(&sb), blocks[4]);
    ck_assert_ptr_eq(superblock_pop(&sb), memory + 10 * 48); /* and only then a fresh one */
}

TEST(starts_are_told_from_interiors)
{
    for (unsigned c = 1; c < CLASSES; c++) {
        if (sizeclass_is_wide(c)) continue;
        unsigned capacity = format(c), size = sizeclasses[c].size, wrong = 0;
        for (unsigned i = 0; i < capacity * size; i++)
            wrong += superblock_starts_at(&sb, memory + i) != (i % size == 0);
        for (unsigned i = 1; i < 2 * SUPERBLOCK; i += 7) {
            wrong += superblock_starts_at(&sb, memory - i);
            wrong += superblock_starts_at(&sb, memory + SUPERBLOCK + i - 1);
        }
        ck_assert_uint_eq(wrong, 0);
        ck_assert(!superblock_starts_at(&sb, NULL));
        ck_assert(!superblock_starts_at(&sb, (void *)UINTPTR_MAX));
    }
    sb.inverse = 0; /* no blocks here */
    unsigned wrong = 0;
    for (unsigned i = 0; i < SUPERBLOCK; i++) wrong += superblock_starts_at(&sb, memory + i);
    ck_assert_uint_eq(wrong, 0);
}

TEST(groups_follow_fullness)
{
    for (unsigned c = 1; c < CLASSES; c++) {
        if (sizeclasses[c].size == 0) continue;
        unsigned capacity = format(c), last = 0, wrong = 0;
        for (unsigned n = 0; n <= capacity; n++) {
            unsigned group = superblock_group_of(&sb, (uint64_t)n << 16);
            unsigned at = superblock_regroup_at(&sb, group);
            wrong += group != n * 8 / capacity || group < last || at <= n;
            wrong += (group == GROUP_EMPTY) != (n == capacity);
            if (group == GROUP_EMPTY) continue;
            wrong += at > capacity; /* the free that leaves the group is seen, and none before it */
            wrong += superblock_group_of(&sb, (uint64_t)at << 16) <= group;
            wrong += superblock_group_of(&sb, (uint64_t)(at - 1) << 16) != group;
            last = group;
        }
        ck_assert_uint_eq(wrong, 0);
    }
}

/* --- pending --------------------------------------------------------------------------------- */

TEST(chains_join_and_come_back)
{
    unsigned capacity = format(5);
    pop_all(capacity);
    unsigned pending = 0;
    for (unsigned i = 0; i < capacity; i += 3) { /* chains of three: i -> i+1 -> i+2 */
        struct chain chain = {0, 0, 0};
        for (unsigned j = i; j < i + 3 && j < capacity; j++) {
            unsigned number = (unsigned)block_number(&sb, blocks[j]);
            if (chain.count++ == 0)
                chain.first = number;
            else
                block_set_link(block_at(&sb, chain.last), number);
            chain.last = number;
        }
        pending += chain.count;
        ck_assert_uint_eq(superblock_put_pending(&sb, &chain), pending);
        ck_assert(superblock_is_valid(&sb));
    }
    ck_assert_uint_eq(pending, capacity);
    ck_assert_uint_eq(superblock_live(&sb), 0);
    ck_assert_uint_eq(superblock_absorb(&sb), capacity);
    ck_assert_uint_eq(superblock_absorb(&sb), 0);
    ck_assert(superblock_is_valid(&sb));
    pop_all(capacity);
    ck_assert(are_all_blocks(5, capacity));
}

TEST(a_splice_goes_in_front)
{
    format(5);
    pop_all(6);
    superblock_push(&sb, blocks[5]);
    struct chain one = chain_of_block(&sb, blocks[1]), two = chain_of_block(&sb, blocks[2]);
    superblock_put_pending(&sb, &one);
    superblock_put_pending(&sb, &two);
    struct chain chain = superblock_take_pending(&sb);
    ck_assert_uint_eq(chain.count, 2);
    uint64_t before = word_read(&sb), word = superblock_spliced(&sb, before, &chain);
    ck_assert_uint_eq(word_read(&sb), before); /* nothing is committed yet */
    ck_assert_uint_eq(word_free(word), word_free(before) + 2);
    ck_assert_uint_eq(word_carve(word), word_carve(before));
    sb.word = word;
    ck_assert(superblock_is_valid(&sb));
    ck_assert_ptr_eq(superblock_pop(&sb), blocks[2]);
    ck_assert_ptr_eq(superblock_pop(&sb), blocks[1]);
    ck_assert_ptr_eq(superblock_pop(&sb), blocks[5]);
}

/* Each time that f of a superblock is, but a quarter at most; and when nothing lives. */
TEST(what_is_pending_is_looked_at_in_time)
{
    unsigned capacity = format(5), f = options.empty_fraction;
    for (options.empty_fraction = 1; options.empty_fraction <= 4; options.empty_fraction++) {
        unsigned eighths = options.empty_fraction < 2 ? 1 : 2, step = capacity * eighths / 8;
        format(5);
        pop_all(capacity);
        for (unsigned n = 1; n <= capacity; n++) {
            struct chain chain = chain_of_block(&sb, blocks[n - 1]);
            unsigned after = superblock_put_pending(&sb, &chain);
            ck_assert_int_eq(superblock_pending_is_due(&sb, after, 1), n % step == 0 || n == capacity);
        }
    }
    options.empty_fraction = f;
}

static void *free_a_quarter(void *first)
{
    void **from = first;
    for (unsigned i = 0; i < CAPACITY_MAX / 4; i++) {
        struct chain chain = chain_of_block(&sb, from[i]);
        superblock_put_pending(&sb, &chain);
    }
    return NULL;
}

/* Four free, one takes: each block comes back once. */
TEST(frees_of_others_are_not_lost)
{
    for (unsigned round = 0; round < 40; round++) {
        format(1);
        pop_all(CAPACITY_MAX);
        pthread_t threads[4];
        for (unsigned i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, free_a_quarter, &blocks[i * (CAPACITY_MAX / 4)]);
        unsigned back = 0;
        while (back < CAPACITY_MAX / 2) back += superblock_absorb(&sb);
        for (unsigned i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        back += superblock_absorb(&sb);
        ck_assert_uint_eq(back, CAPACITY_MAX);
        ck_assert(superblock_is_valid(&sb));
        pop_all(CAPACITY_MAX);
        ck_assert(are_all_blocks(1, CAPACITY_MAX));
    }
}

TEST(a_block_is_known_to_be_free)
{
    unsigned capacity = format(9);
    pop_all(20);
    for (unsigned i = 0; i < 20; i++) *(uint64_t *)blocks[i] = 0;
    superblock_push(&sb, blocks[3]);
    superblock_push(&sb, blocks[8]);
    for (unsigned i = 10; i < 13; i++) {
        struct chain chain = chain_of_block(&sb, blocks[i]);
        superblock_put_pending(&sb, &chain);
    }
    for (unsigned i = 0; i < capacity; i++) {
        void *block = memory + (size_t)i * sizeclasses[9].size;
        bool is_free = i == 3 || i == 8 || (i >= 10 && i < 13) || i >= 20;
        ck_assert_int_eq(superblock_has_free(&sb, block), is_free);
        if (i < 20) ck_assert_int_eq(block_looks_free(block), is_free);
    }
}

/* --- what is broken is seen ------------------------------------------------------------------- */

/* Twenty blocks given, four of them free, three pending: a valid state with all of its parts. */
static void some_state(void)
{
    format(9);
    pop_all(20);
    for (unsigned i = 0; i < 4; i++) superblock_push(&sb, blocks[i]);
    for (unsigned i = 4; i < 7; i++) {
        struct chain chain = chain_of_block(&sb, blocks[i]);
        superblock_put_pending(&sb, &chain);
    }
}

static uint64_t in_word(unsigned first, unsigned count, uint64_t carve)
{
    return first | (uint64_t)count << 16 | carve << 32;
}

enum {
    FREE_TOO_MANY,
    FREE_TOO_FEW,
    FIRST_MISSING,
    FIRST_BESIDE_THE_GRID,
    CARVED_MORE,
    WRITTEN_AFTER_FREE,
    LINK_BESIDE_THE_GRID,
    LINK_IN_A_CIRCLE,
    PENDING_WRITTEN,
    PENDING_TOO_MANY,
    PENDING_TOO_FEW,
    FREE_BEYOND_CAPACITY,
    BREAKS
};

static void break_it(int how)
{
    uint64_t word = sb.word, pending = sb.pending;
    unsigned first = word_first(word), count = word_free(word), size = sizeclasses[9].size;
    switch (how) {
    case FREE_TOO_MANY: sb.word = in_word(first, count + 1, word_carve(word)); break;
    case FREE_TOO_FEW: sb.word = in_word(first, count - 1, word_carve(word)); break;
    case FIRST_MISSING: sb.word = in_word(0, count, word_carve(word)); break;
    case FIRST_BESIDE_THE_GRID: sb.word = in_word(first + 16, count, word_carve(word)); break;
    case CARVED_MORE: sb.word = in_word(first, count, word_carve(word) + size); break;
    case WRITTEN_AFTER_FREE: memset(blocks[2], 'w', 8); break;
    case LINK_BESIDE_THE_GRID: block_set_link(blocks[2], 8 + 16); break;
    case LINK_IN_A_CIRCLE: block_set_link(blocks[0], first); break;
    case PENDING_WRITTEN: memset(blocks[5], 'w', 8); break;
    case PENDING_TOO_MANY: sb.pending = pending + 0x10000; break;
    case PENDING_TOO_FEW: sb.pending = pending - 0x10000; break;
    case FREE_BEYOND_CAPACITY: sb.word = in_word(first, sizeclasses[9].capacity, word_carve(word)); break;
    }
}

static void look(void *unused)
{
    (void)unused;
    superblock_is_valid(&sb);
}

TEST(each_broken_invariant_is_seen, .times = BREAKS)
{
    some_state();
    ck_assert(superblock_is_valid(&sb));
    break_it(_i);
    if (_i == WRITTEN_AFTER_FREE || _i == PENDING_WRITTEN) {
        struct outcome said = run_child(look, NULL);
        const char *block = blocks[_i == WRITTEN_AFTER_FREE ? 2 : 5];
        ck_assert(is_misuse(&said, "malloc", block, "memory was written to after it was freed"));
    } else {
        ck_assert(!superblock_is_valid(&sb));
    }
}

static void pop_written(void *block)
{
    superblock_push(&sb, block);
    memset(block, 0, 8);
    superblock_pop(&sb);
}

TEST(a_write_after_free_ends_the_program)
{
    format(9);
    pop_all(5);
    assert_misuse(pop_written, blocks[2], "malloc", "memory was written to after it was freed");
}

int main(void) { return run_tests((struct suite){.begin = setup}); }
