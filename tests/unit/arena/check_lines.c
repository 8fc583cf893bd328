/* SPDX-License-Identifier: Apache-2.0 */
/* Cache lines of a superblock that changes hands partly used: which of its blocks may go, and that two
 * threads never get blocks of one line. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/false_sharing.h"
#include "base/options.h"
#include "heap/heap.h"

static struct superblock *new_superblock(unsigned class)
{
    bool clean;
    options_read();
    sizeclass_init();
    superblock_init();
    struct superblock *sb = arena_take(1, SLOT_BLOCKS, ARENA_PLAIN, &clean);
    superblock_format(sb, class);
    sb->role = (union superblock_role){.owner = OWNER_NONE, .heap = HEAP_GLOBAL};
    return sb;
}

/* The lines that the bytes of a block lie in. */
static size_t first_line(const char *block) { return (uintptr_t)block / LINE; }
static size_t last_line(const struct superblock *sb, const char *block)
{
    return ((uintptr_t)block + superblock_class(sb)->size - 1) / LINE;
}

/* Which lines of a superblock live blocks lie in. */
static void mark_lines(const struct superblock *sb, char **block, const bool *live, unsigned n, bool *line)
{
    for (unsigned i = 0; i < n; i++)
        for (size_t l = first_line(block[i]); live[i] && l <= last_line(sb, block[i]); l++)
            line[l - first_line(slot_start(sb))] = true;
}

static bool any_line(const struct superblock *sb, const char *block, const bool *line)
{
    bool any = false;
    for (size_t l = first_line(block); l <= last_line(sb, block); l++)
        any |= line[l - first_line(slot_start(sb))];
    return any;
}

/* Takes `carved` blocks, frees those that chance picks, holds back; what can be had then shares no line with
 * a block that is live, and everything that shares none can be had. */
static void check_hold_back(unsigned class, unsigned carved, uint64_t *random)
{
    struct superblock *sb = new_superblock(class);
    unsigned capacity = superblock_class(sb)->capacity, size = superblock_class(sb)->size;
    char **block = calloc(capacity, sizeof *block);
    bool *live = calloc(capacity, sizeof *live), *given = calloc(capacity, sizeof *given);
    bool line[SUPERBLOCK / LINE] = {false};
    for (unsigned i = 0; i < carved; i++) block[i] = superblock_pop(sb);
    for (unsigned i = 0; i < carved; i++) live[i] = random_below(random, 3) == 0;
    for (unsigned i = 0; i < carved; i++)
        if (!live[i]) superblock_push(sb, block[i]);
    mark_lines(sb, block, live, carved, line);

    false_sharing_hold_back(sb);
    ck_assert(superblock_is_valid(sb));
    for (char *b; (b = superblock_pop(sb)) != NULL;) {
        unsigned i = (unsigned)(b - slot_start(sb)) / size;
        ck_assert(!given[i] && !live[i] && !any_line(sb, b, line));
        given[i] = true;
    }
    for (unsigned i = 0; i < capacity; i++) {
        bool alone = !live[i] && !any_line(sb, slot_start(sb) + i * size, line);
        /* where carving stopped, a block may wait although its line is free */
        bool at_carve = i + LINE / BLOCK_UNIT >= carved && i <= carved + LINE / BLOCK_UNIT;
        ck_assert(given[i] == alone || (at_carve && !given[i]));
    }
    arena_give(sb, 1);
    free(block), free(live), free(given);
}

TEST(test_hold_back)
{
    static const unsigned classes[] = {1, 2, 3, 4, 5, 6, 7, 9, 13, 15, 39, 40};
    uint64_t random = random_seed();
    sizeclass_init();
    for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++) {
        unsigned capacity = sizeclasses[classes[i]].capacity;
        check_hold_back(classes[i], capacity, &random);
        for (unsigned n = 0; n < 3; n++)
            check_hold_back(classes[i], random_below(&random, capacity), &random);
    }
}

static void begin_notes(struct superblock *sb)
{
    false_sharing_begin(sb);
    sb->role.sharing = SHARING_NOTES;
}

/* Frees one block and says what may go for it. */
static struct chain free_one(struct superblock *sb, char *block)
{
    struct chain one = chain_of_block(sb, block);
    block_set_link(block, 0);
    return false_sharing_release(sb, &one);
}

/* Foreign blocks of a line wait for the last of them; blocks of the heap's own do not. */
TEST(test_notes)
{
    struct superblock *sb = new_superblock(1); /* 16 bytes: four to a line */
    char *block[8], *own[4];
    for (unsigned i = 0; i < 8; i++) block[i] = superblock_pop(sb);
    begin_notes(sb);
    for (unsigned i = 0; i < 4; i++) own[i] = superblock_pop(sb);
    for (unsigned i = 0; i < 3; i++) ck_assert_uint_eq(free_one(sb, block[i]).count, 0);
    ck_assert(false_sharing_holds(sb, block[0]) && !false_sharing_holds(sb, block[3]) &&
              !false_sharing_holds(sb, own[0]));
    ck_assert_uint_eq(superblock_live(sb), 9);
    for (unsigned i = 0; i < 4; i++) ck_assert_uint_eq(free_one(sb, own[i]).count, 1);
    ck_assert_uint_eq(free_one(sb, block[3]).count, 4);
    ck_assert(!false_sharing_holds(sb, block[0]) && !false_sharing_is_over(sb));
    for (unsigned i = 4; i < 7; i++) ck_assert_uint_eq(free_one(sb, block[i]).count, 0);
    ck_assert(!false_sharing_is_over(sb));
    ck_assert_uint_eq(free_one(sb, block[7]).count, 4);
    ck_assert(false_sharing_is_over(sb));
}

/* Against a model: after each free the blocks that may go are just those without a foreign one near. */
static void check_notes(unsigned class, uint64_t *random)
{
    struct superblock *sb = new_superblock(class);
    unsigned capacity = superblock_class(sb)->capacity, size = superblock_class(sb)->size, left = 0;
    char **block = calloc(capacity, sizeof *block);
    bool *foreign = calloc(capacity, sizeof *foreign), *went = calloc(capacity, sizeof *went);
    unsigned *order = calloc(capacity, sizeof *order);
    for (unsigned i = 0; i < capacity; i++) block[i] = superblock_pop(sb);
    for (unsigned i = 0; i < capacity; i++) {
        foreign[i] = random_below(random, 2) == 0;
        if (foreign[i])
            order[left++] = i;
        else
            superblock_push(sb, block[i]);
    }
    begin_notes(sb);
    while (left != 0) {
        unsigned pick = random_below(random, left), i = order[pick];
        order[pick] = order[--left];
        struct chain gone = free_one(sb, block[i]);
        foreign[i] = false;
        bool line[SUPERBLOCK / LINE] = {false};
        mark_lines(sb, block, foreign, capacity, line);
        for (unsigned n = 0, number = gone.first; n < gone.count; n++) {
            unsigned j = (number - BLOCK_BIAS) / size;
            ck_assert(!went[j] && !any_line(sb, block[j], line));
            went[j] = true;
            number = block_link(block[j]) & 0xffff;
        }
        ck_assert(went[i] || any_line(sb, block[i], line));
        ck_assert(false_sharing_holds(sb, block[i]) == !went[i]);
        ck_assert_int_eq(false_sharing_is_over(sb), left == 0);
    }
    ck_assert(false_sharing_is_over(sb));
    arena_give(sb, 1);
    free(block), free(foreign), free(went), free(order);
}

TEST(test_notes_of_any_class)
{
    static const unsigned classes[] = {1, 2, 3, 5, 6, 7, 9, 13};
    uint64_t random = random_seed();
    for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++) check_notes(classes[i], &random);
}

/* What waits goes back to the pending list. */
TEST(test_notes_end)
{
    for (unsigned round = 0; round < 100; round++) {
        struct superblock *sb = new_superblock(1);
        char *block[4];
        for (unsigned i = 0; i < 4; i++) block[i] = superblock_pop(sb);
        begin_notes(sb);
        for (unsigned i = 0; i < 3; i++) free_one(sb, block[i]);
        false_sharing_forget(sb);
        ck_assert_uint_eq(sb->role.sharing, SHARING_NONE);
        ck_assert(superblock_is_valid(sb));
        ck_assert_uint_eq(superblock_live(sb), 1);
        ck_assert_uint_eq(superblock_absorb(sb), 3);
        arena_give(sb, 1);
    }
}

enum { BLOCKS = 60000, SIZE = 16 };

static char *mine[BLOCKS], *theirs[BLOCKS];
static pthread_barrier_t step;

/* Keeps one block in three, and stays where it is while the other allocates. */
static void *keep_some(void *unused)
{
    pin_to(0);
    for (unsigned i = 0; i < BLOCKS; i++) mine[i] = hoard_malloc(SIZE);
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % 30 < 10 && i % 3 != 0) continue; /* some lines stay partly live, others become free */
        hoard_free(mine[i]);
        mine[i] = NULL;
    }
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return unused;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (char *const *)a, y = (uintptr_t) * (char *const *)b;
    return (x > y) - (x < y);
}

static unsigned shared_lines(void)
{
    unsigned shared = 0, m = 0, t = 0;
    qsort(mine, BLOCKS, sizeof *mine, by_address);
    qsort(theirs, BLOCKS, sizeof *theirs, by_address);
    while (m < BLOCKS && t < BLOCKS) {
        uintptr_t a = (uintptr_t)mine[m] / LINE, b = (uintptr_t)theirs[t] / LINE;
        shared += a == b && mine[m] != NULL;
        m += a <= b;
        t += b < a || (a == b && a == 0);
    }
    return shared;
}

static unsigned reused(void)
{
    unsigned n = 0, m = 0;
    for (unsigned t = 0; t < BLOCKS; t++) {
        while (m < BLOCKS && (uintptr_t)mine[m] / SUPERBLOCK < (uintptr_t)theirs[t] / SUPERBLOCK) m++;
        n += m < BLOCKS && (uintptr_t)mine[m] / SUPERBLOCK == (uintptr_t)theirs[t] / SUPERBLOCK;
    }
    return n;
}

TEST(test_two_heaps, .times = PATHS)
{
    use_path(_i, NULL);
    needs_cpus(2); /* or both threads have one heap */
    pthread_t other;
    pthread_barrier_init(&step, NULL, 2);
    ck_assert_int_eq(pthread_create(&other, NULL, keep_some, NULL), 0);
    pin_to(1);
    pthread_barrier_wait(&step);
    heap_give_all();
    for (unsigned round = 0; round < 4; round++) { /* what is freed comes back by lines, too */
        for (unsigned i = 0; i < BLOCKS; i++) theirs[i] = hoard_malloc(SIZE);
        if (round == 3) break;
        for (unsigned i = 0; i < BLOCKS; i++)
            if (i % 5 != round) hoard_free(theirs[i]);
        for (unsigned i = 0; i < BLOCKS; i++)
            if (i % 5 == round) hoard_free(theirs[i]);
    }
    ck_assert_uint_eq(shared_lines(), 0);
    ck_assert_uint_gt(reused(), 0); /* or nothing was shown */
    pthread_barrier_wait(&step);
    pthread_join(other, NULL);
    for (unsigned i = 0; i < BLOCKS; i++) hoard_free(mine[i]);
    for (unsigned i = 0; i < BLOCKS; i++) hoard_free(theirs[i]);
    assert_all_comes_back();
}

/* The heap that gave a superblock goes on with it as if nothing had been: all that lives in it is its own. */
TEST(test_same_heap, .times = PATHS)
{
    use_path(_i, NULL);
    pin_to(0);
    enum { FEW = 4096 }; /* a superblock */
    for (unsigned i = 0; i < FEW; i++) mine[i] = hoard_malloc(SIZE);
    for (unsigned i = 0; i < FEW; i += 2) hoard_free(mine[i]);
    heap_give_all();
    for (unsigned i = 0; i < FEW; i += 2) {
        mine[i] = hoard_malloc(SIZE);
        ck_assert_ptr_eq(superblock_of(mine[i]), superblock_of(mine[1]));
    }
    ck_assert_uint_eq(superblock_of(mine[1])->role.sharing, SHARING_NONE);
    for (unsigned i = 0; i < FEW; i++) hoard_free(mine[i]);
    ck_assert(heap_is_valid());
}

int main(void) { return run_tests((struct suite){0}); }
