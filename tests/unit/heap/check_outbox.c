/* SPDX-License-Identifier: Apache-2.0 */
/* check_outbox.c: blocks freed on another heap wait in that heap's batch, and arrive in chains. */
#include "support/check_backend.h"

#include "heap/heap_fast.h"

enum { BATCH_PATHS = PATHS - 1 }; /* the locked path has none */

enum { SIZE = 64, FULL = 32, BLOCKS = 5000 };

static void *blocks[BLOCKS];

static unsigned pending_of(const void *block)
{
    return atomic_load(&superblock_of(block)->pending) >> 16 & 0xffff;
}

static struct {
    unsigned first, n; /* what to free */
    unsigned id;       /* the heap that the other thread had all the time */
    bool moved;        /* or not all the time */
    _Atomic bool wanted;
} work;

static void *free_blocks(void *arg)
{
    pin_to(1);
    for (work.id = rseq_id();; work.wanted = false) {
        while (!work.wanted) continue;
        for (unsigned i = 0; i < work.n; i++) hoard_free(blocks[work.first + i]);
        work.moved |= rseq_id() != work.id;
    }
    return arg;
}

/* Frees n blocks from the first on, on another CPU; false if that was not always by the same other heap,
 * which is seldom, and tells nothing. */
static bool free_elsewhere(unsigned first, unsigned n)
{
    work.first = first;
    work.n = n;
    work.wanted = true;
    while (work.wanted) continue;
    return !work.moved && work.id != rseq_id();
}

#define NO_SECOND "no second heap: one CPU, no restartable sequences, or both threads had one"

/* One heap has n blocks, another one is ready to free. False where there are not two. */
static bool setup(int path, size_t size, unsigned n)
{
    pthread_t thread;
    use_path(path, NULL);
    pin_to(0);
    hoard_free(hoard_malloc(1));
    if (cpu.ids == 0 || cpus_at_start() < 2) return false;
    ck_assert_int_eq(pthread_create(&thread, NULL, free_blocks, NULL), 0);
    bool two = free_elsewhere(0, 0);
    for (unsigned i = 0; i < n; i++) blocks[i] = hoard_malloc(size);
    return two;
}

TEST(blocks_wait_until_the_outbox_is_full, .times = BATCH_PATHS)
{
    needs(setup(_i, SIZE, 2 * FULL + 1), NO_SECOND);
    needs(free_elsewhere(0, FULL), NO_SECOND);
    ck_assert_uint_eq(pending_of(blocks[0]), 0);
    needs(free_elsewhere(FULL, 1), NO_SECOND); /* which finds it full */
    ck_assert_uint_eq(pending_of(blocks[0]), FULL);
    heap_deliver_all();
    ck_assert_uint_eq(pending_of(blocks[0]), FULL + 1);
    free_elsewhere(FULL + 1, FULL);
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
}

/* 27 to a superblock: half of them wait, for a malloc of that id or a statistic. */
TEST(half_a_superblock_of_big_blocks_waits, .times = BATCH_PATHS)
{
    needs(setup(_i, SUPERBLOCK / 8 + 1, 15), NO_SECOND);
    needs(free_elsewhere(0, 13), NO_SECOND);
    ck_assert_uint_eq(pending_of(blocks[0]), 0);
    needs(free_elsewhere(13, 2), NO_SECOND);
    ck_assert_uint_eq(pending_of(blocks[0]), 2);
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
}

/* The other thread goes on, and keeps nothing more; or what it freed waits. */
TEST(what_another_keeps_goes_home_when_it_is_not_used, .times = 2 * BATCH_PATHS)
{
    needs(setup(_i / 2, _i % 2 != 0 ? SIZE : SUPERBLOCK / 8 + 1, 3), NO_SECOND);
    needs(free_elsewhere(0, 2), NO_SECOND);
    heap_send_idle_home(false);
    needs(free_elsewhere(2, 1), NO_SECOND);
    heap_send_idle_home(false);
    ck_assert_uint_eq(superblock_live(superblock_of(blocks[0])), 3);
    heap_send_idle_home(false);
    ck_assert_uint_eq(superblock_live(superblock_of(blocks[0])), 0);
    ck_assert(heap_is_valid());
}

static void *malloc_one(void *size)
{
    pin_to(1);
    return hoard_malloc((uintptr_t)size);
}

/* Where malloc would carve next in the superblock of the first block. */
static unsigned carve_of_first(void) { return word_carve(word_read(superblock_of(blocks[0]))); }

/* The first block of 256 bytes is carved alone, the next ones four at a time, and two are worth half of
 * that. */
TEST(what_others_freed_serves_before_fresh_blocks, .times = BATCH_PATHS)
{
    needs(setup(_i, 256, 2 * FULL + 1), NO_SECOND);
    struct superblock *sb = superblock_of(blocks[0]);
    unsigned carved = carve_of_first();
    ck_assert_uint_eq(word_first(word_read(sb)), 0);
    needs(free_elsewhere(0, FULL + 1), NO_SECOND);
    ck_assert_uint_eq(pending_of(blocks[0]), FULL);
    for (unsigned i = 0; i < FULL; i++) {
        blocks[i] = hoard_malloc(256);
        ck_assert_ptr_eq(superblock_of(blocks[i]), sb);
        ck_assert_uint_eq(carve_of_first(), carved);
    }
    heap_deliver_all();
    ck_assert_uint_eq(pending_of(blocks[0]), 1);
    blocks[FULL] = hoard_malloc(256);
    ck_assert_uint_eq(carve_of_first(), carved + 4 * 256); /* one alone does not */
    ck_assert_uint_eq(pending_of(blocks[0]), 1);
    ck_assert(heap_is_valid());
}

/* Nobody waits for the holder, and nobody goes elsewhere. */
TEST(what_others_freed_waits_while_the_lock_is_held, .times = BATCH_PATHS)
{
    needs(setup(_i, 256, 2 * FULL + 1), NO_SECOND);
    unsigned carved = carve_of_first();
    needs(free_elsewhere(0, FULL + 1), NO_SECOND);
    struct heap *heap = heap_mine();
    lock_take(&heap->lock);
    blocks[0] = hoard_malloc(256);
    lock_give(&heap->lock);
    ck_assert_uint_eq(word_carve(word_read(superblock_of(blocks[1]))), carved + 4 * 256);
    ck_assert_uint_eq(pending_of(blocks[1]), FULL);
    ck_assert(heap_is_valid());
}

/* By a thread on the same CPU, which has the same heap but for bad luck. */
static void *malloc_elsewhere(size_t size) { return in_thread(malloc_one, (void *)size); }

/* The latest first, and only where no line is shared: then a block may be anybody's. */
TEST(a_block_that_waits_serves_the_next_malloc_there, .times = BATCH_PATHS)
{
    for (size_t size = SIZE; size >= 48; size -= 16) {
        needs(setup(_i, size, 3), NO_SECOND);
        needs(free_elsewhere(0, 3), NO_SECOND);
        void *block = malloc_elsewhere(size);
        ck_assert_int_eq(block == blocks[2], size == SIZE);
        if (block == blocks[2]) ck_assert(all_bytes(block, 16, 0)); /* no link is the program's to see */
        ck_assert_uint_eq(live_bytes(), size);
        hoard_free(block);
        heap_deliver_all();
        ck_assert_uint_eq(live_bytes(), 0);
    }
}

/* More superblocks than are sorted at a time, in any order; and what was freed can be had again. */
TEST(blocks_of_many_superblocks_find_theirs, .times = BATCH_PATHS)
{
    needs(setup(_i, 16, 0), NO_SECOND);
    uint64_t random = random_seed();
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            size_t size = 1 + random_below(&random, 2000);
            blocks[i] = memset(hoard_malloc(size), 0xa5, size);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            unsigned other = random_below(&random, BLOCKS);
            void *block = blocks[i];
            blocks[i] = blocks[other];
            blocks[other] = block;
        }
        free_elsewhere(0, BLOCKS);
        ck_assert_uint_eq(live_bytes(), 0);
        ck_assert(heap_is_valid());
    }
    hoard_trim(0);
    ck_assert_uint_eq(held_bytes(), 0);
}

/* Too few to be looked at by themselves, of a superblock on the global heap. */
TEST(what_waits_there_is_collected_with_all_the_rest, .times = BATCH_PATHS)
{
    use_path(_i, NULL);
    for (unsigned i = 0; i < 100; i++) blocks[i] = hoard_malloc(SIZE);
    needs_rseq();
    heap_give_all();
    for (unsigned i = 0; i < 5; i++) hoard_free(blocks[i]);
    heap_deliver_all();
    ck_assert_uint_eq(pending_of(blocks[0]), 5);
    heap_give_all();
    ck_assert_uint_eq(pending_of(blocks[0]), 0);
    for (unsigned i = 5; i < 100; i++) hoard_free(blocks[i]);
    assert_all_comes_back();
}

TEST(trimming_finds_what_waits, .times = BATCH_PATHS)
{
    needs(setup(_i, SIZE, FULL), NO_SECOND);
    needs(free_elsewhere(0, FULL), NO_SECOND);
    ck_assert_int_eq(hoard_trim(0), 1);
    ck_assert_uint_eq(held_bytes(), 0);
}

static void free_it(void *block) { hoard_free(block); }

TEST(a_block_that_waits_is_not_freed_twice, .times = 2 * BATCH_PATHS)
{
    needs(setup(_i / 2, _i % 2 ? 20000 : SIZE, 3), NO_SECOND);
    needs(free_elsewhere(0, 3), NO_SECOND);
    assert_misuse(free_it, blocks[1], "hoard_free", "freed twice");
}

static void write_and_deliver(void *block)
{
    ((uint64_t *)block)[work.n] = 0;
    heap_deliver_all();
}

/* Either word of a block that waits. */
TEST(a_write_to_a_block_that_waits_is_found, .times = BATCH_PATHS)
{
    needs(setup(_i, SIZE, 3), NO_SECOND);
    needs(free_elsewhere(0, 3), NO_SECOND);
    for (work.n = 0; work.n < 2; work.n++) {
        struct outcome said = run_child(write_and_deliver, blocks[2]);
        bool found = said.status != 0 && strstr(said.text, "written to after it was freed") != NULL;
        ck_assert_msg(found, "word %u: %s", work.n, said.text);
    }
}

static void see_that_nothing_lives(void *arg)
{
    (void)arg;
    if (live_bytes() != 0) _exit(3);
}

TEST(a_child_has_what_waits, .times = BATCH_PATHS)
{
    needs(setup(_i, SIZE, FULL), NO_SECOND);
    needs(free_elsewhere(0, FULL), NO_SECOND);
    assert_ends_well(see_that_nothing_lives, NULL);
}

static void give_idle_and_look(void *block)
{
    heap_give_idle();
    if (superblock_live(superblock_of(block)) != 0) _exit(3);
}

/* There no thread has the heaps whose batches they are: who looks for idle memory takes it from them. */
TEST(a_child_finds_what_waits, .times = BATCH_PATHS)
{
    needs(setup(_i, SIZE, FULL), NO_SECOND);
    needs(free_elsewhere(0, FULL), NO_SECOND);
    ck_assert_uint_eq(superblock_live(superblock_of(blocks[0])), FULL);
    assert_ends_well(give_idle_and_look, blocks[0]);
}

static _Atomic bool stop;
static _Atomic(void *) mailbox[16];

static void *free_what_comes(void *arg)
{
    pin_to(1);
    for (unsigned i = 0; !stop; i++) hoard_free(atomic_exchange(&mailbox[i % 16], NULL));
    return arg;
}

TEST(an_outbox_is_taken_while_it_is_filled, .times = BATCH_PATHS)
{
    needs(setup(_i, SIZE, 0), NO_SECOND);
    pthread_t thread;
    pthread_create(&thread, NULL, free_what_comes, NULL);
    unsigned rounds = steps_of(300000);
    for (unsigned i = 0; i < rounds; i++) {
        hoard_free(atomic_exchange(&mailbox[i % 16], hoard_malloc(16 + i % 512)));
        if (i % 8 == 0) heap_deliver_all();
    }
    stop = true;
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < 16; i++) hoard_free(mailbox[i]);
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
}

int main(void) { return run_tests((struct suite){0}); }
