/* SPDX-License-Identifier: Apache-2.0 */
/* check_waiting.c: frees of cold blocks wait until the CPU has the block's line. */
#include "support/check_backend.h"

#include "heap/heap_fast.h"

enum { SECTION_PATHS = PATHS - 1 }; /* on the locked path no superblock is cold */

/* 20 MiB, where superblocks are cold from 16 MiB on. */
enum { SIZE = 1024, BLOCKS = 20 * 1024, THREADS = 4, LOOK_EACH = 64 };

static char *blocks[BLOCKS];

/* A heap with cold superblocks. False: sections do not run here. */
static bool setup(int path)
{
    use_path(path, NULL);
    pin_to(0);
    hoard_free(hoard_malloc(1));
    if (cpu.ids == 0) return false;
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = memset(hoard_malloc(SIZE), 1, SIZE);
    return true;
}

#define NO_SECTIONS "no restartable sequences here"

/* The last block that lies in a cold superblock. free's slow path sees the first block of an arena: so one
 * is freed before. */
static unsigned last_cold(void)
{
    unsigned i = BLOCKS - 1;
    while (i != 0 && !superblock_is_cold(superblock_of(blocks[i]))) i--;
    ck_assert_uint_gt(i, BLOCKS / 2);
    hoard_free(blocks[i]);
    blocks[i] = hoard_malloc(SIZE);
    heap_deliver_all();
    while (!superblock_is_cold(superblock_of(blocks[i]))) i--;
    return i;
}

static void free_it(void *block) { hoard_free(block); }

static void free_all(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) hoard_free(blocks[i]);
}

TEST(a_small_heap_has_no_cold_superblock, .times = PATHS)
{
    use_path(_i, NULL);
    for (unsigned i = 0; i < BLOCKS / 2; i++) {
        blocks[i] = hoard_malloc(SIZE);
        ck_assert(!superblock_is_cold(superblock_of(blocks[i])));
    }
}

TEST(a_cold_block_waits_and_is_freed_once, .times = SECTION_PATHS)
{
    needs(setup(_i), NO_SECTIONS);
    unsigned i = last_cold();
    size_t lived = live_bytes();
    hoard_free(blocks[i]);
    ck_assert(!block_looks_free(blocks[i]));
    ck_assert_uint_eq(live_bytes(), lived - SIZE); /* it is delivered for this sum */
    ck_assert(block_looks_free(blocks[i]));
    blocks[i] = NULL;
    free_all();
    ck_assert_uint_eq(live_bytes(), 0);
    assert_all_comes_back();
}

/* The block that waits goes home when another one needs its place, into the word and not as a remote free. */
TEST(the_next_block_of_the_place_frees_it, .times = SECTION_PATHS)
{
    needs(setup(_i), NO_SECTIONS);
    unsigned first = last_cold(), next = first - 1;
    struct superblock *sb = superblock_of(blocks[first]);
    while (heap_waiting_place(blocks[next]) != heap_waiting_place(blocks[first]) ||
           !superblock_is_cold(superblock_of(blocks[next])))
        next--;
    hoard_free(blocks[first]);
    unsigned had = word_free(word_read(sb));
    hoard_free(blocks[next]);
    ck_assert(block_looks_free(blocks[first]) && !block_looks_free(blocks[next]));
    needs(word_free(word_read(sb)) == had + 1, "the thread has moved");
    ck_assert(!superblock_has_pending(sb));
}

TEST(a_block_that_waits_is_not_freed_twice, .times = SECTION_PATHS)
{
    needs(setup(_i), NO_SECTIONS);
    unsigned i = last_cold();
    hoard_free(blocks[i]);
    assert_misuse(free_it, blocks[i], "hoard_free", "freed twice");
}

static void free_and_trim(void *block)
{
    hoard_free(block);
    hoard_trim(0);
}

static void free_and_fill(void *block)
{
    hoard_free(block);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i] != block) hoard_free(blocks[i]);
}

/* The second free waits, so it is told when the block is delivered, or its place is needed. */
TEST(a_block_that_waited_is_not_freed_twice, .times = SECTION_PATHS)
{
    needs(setup(_i), NO_SECTIONS);
    unsigned i = last_cold();
    hoard_free(blocks[i]);
    heap_deliver_all();
    assert_misuse(free_and_trim, blocks[i], "free", "freed twice");
    assert_misuse(free_and_fill, blocks[i], "hoard_free", "freed twice");
}

static _Atomic unsigned running;

/* Replaces random ones of its share. Wherever a block lies, nobody else writes to it. */
static void *replace(void *arg)
{
    unsigned share = BLOCKS / THREADS, first = (unsigned)(uintptr_t)arg * share;
    uint64_t random = random_seed() + first;
    for (unsigned n = steps_of(200000); n != 0; n--) {
        unsigned i = first + random_below(&random, share);
        if (!all_bytes(blocks[i], SIZE, (unsigned char)blocks[i][0])) abort();
        hoard_free(blocks[i]);
        blocks[i] = memset(hoard_malloc(SIZE), (int)(n % 255 + 1), SIZE);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

TEST(others_deliver_what_waits, .times = SECTION_PATHS)
{
    needs(setup(_i), NO_SECTIONS);
    pthread_t threads[THREADS];
    running = THREADS;
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, replace, (void *)i), 0);
    while (running != 0) heap_deliver_all();
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ck_assert_uint_ge(live_bytes(), (size_t)BLOCKS * SIZE);
    free_all();
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
    assert_all_comes_back();
}

static void free_in_child(void *arg)
{
    (void)arg;
    free_all();
    expect(live_bytes() == 0 && heap_is_valid(), "a child has lost a block that waited");
}

TEST(a_child_frees_what_waits, .times = SECTION_PATHS)
{
    needs(setup(_i), NO_SECTIONS);
    unsigned i = last_cold();
    hoard_free(blocks[i]);
    blocks[i] = NULL;
    assert_ends_well(free_in_child, NULL);
}

int main(void) { return run_tests((struct suite){.seconds = 120}); }
