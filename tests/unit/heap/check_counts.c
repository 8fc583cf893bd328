/* SPDX-License-Identifier: Apache-2.0 */
/* check_counts.c: what hoard_stats counts of slow paths, where it can be known beforehand: threads stay on a
 * CPU each, so that their heaps do not change. */
#include "support/check_backend.h"

#include "heap/heap_table.h"

enum {
    SIZE = 64,
    PER_SUPERBLOCK = SUPERBLOCK / SIZE,
    SUPERBLOCKS = 40,
    BLOCKS = SUPERBLOCKS * PER_SUPERBLOCK
};

static void *blocks[BLOCKS];

static void allocate_all(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(SIZE));
}

/* Each superblock costs one slow malloc, and a free that takes one to its next eighth is a slow one. */
TEST(one_thread, .times = PATHS)
{
    use_path(_i, NULL);
    pin_to(0);
    allocate_all();
    struct hoard_stats full = stats_now();
    ck_assert_uint_eq(full.slow_mallocs, SUPERBLOCKS);
    ck_assert_uint_eq(full.superblocks, SUPERBLOCKS);
    ck_assert_uint_eq(full.slow_frees, 0);
    ck_assert_uint_eq(full.transfers, 0);

    for (unsigned i = 0; i < BLOCKS; i++) hoard_free(blocks[i]);
    struct hoard_stats empty = stats_now();
    ck_assert_uint_eq(empty.slow_mallocs, SUPERBLOCKS);
    ck_assert_uint_eq(empty.remote_frees, 0);
    ck_assert_uint_ge(empty.slow_frees, SUPERBLOCKS - 1); /* the active one has none */
    ck_assert_uint_le(empty.slow_frees, SUPERBLOCKS * GROUP_EMPTY);
    ck_assert_uint_eq(empty.transfers, SUPERBLOCKS - empty.superblocks); /* each that is here no more */
}

/* Superblocks that go to the global heap and come back are counted each way. */
TEST(there_and_back, .times = PATHS)
{
    use_path(_i, NULL);
    pin_to(0);
    allocate_all();
    heap_get(IDS_MAX - 1); /* a heap that is alone gives away only what is empty */
    unsigned live = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % 4 == 0)
            blocks[live++] = blocks[i]; /* so none is empty */
        else
            hoard_free(blocks[i]);
    struct hoard_stats given = stats_now();
    ck_assert_uint_gt(given.global_superblocks, SUPERBLOCKS / 4);
    ck_assert_uint_eq(given.transfers, given.global_superblocks);
    ck_assert_uint_eq(given.global_superblocks + given.superblocks, SUPERBLOCKS);

    for (unsigned i = 0; i < BLOCKS / 4; i++) ck_assert_ptr_nonnull(hoard_malloc(SIZE));
    struct hoard_stats taken = stats_now();
    ck_assert_uint_lt(taken.global_superblocks, given.global_superblocks);
    ck_assert_uint_eq(taken.transfers - given.transfers, given.global_superblocks - taken.global_superblocks);
    ck_assert_uint_gt(taken.slow_mallocs, given.slow_mallocs);
    for (unsigned i = 0; i < live; i++) hoard_free(blocks[i]);
}

static _Atomic unsigned stage;

/* Goes on running, so that its id stays its own. */
static void *produce(void *arg)
{
    pin_to(1);
    allocate_all();
    stage = 1;
    while (stage == 1) continue;
    return arg;
}

TEST(another_threads_blocks, .times = PATHS)
{
    needs_cpus(2);
    use_path(_i, NULL);
    if (_i != PATHS - 1) needs_rseq();
    hoard_free(hoard_malloc(SIZE));
    pthread_t producer;
    pthread_create(&producer, NULL, produce, NULL);
    while (stage == 0) sched_yield();
    pin_to(0);
    struct hoard_stats before = stats_now();
    for (unsigned i = 0; i < BLOCKS; i++) hoard_free(blocks[i]);
    struct hoard_stats after = stats_now();
    stage = 2;
    pthread_join(producer, NULL);
    uint64_t remote = after.remote_frees - before.remote_frees, slow = after.slow_frees - before.slow_frees;
    ck_assert_uint_ge(slow, remote);
    if (_i == 2) { /* there they need no way of their own */
        ck_assert_uint_eq(remote, 0);
        ck_assert_uint_le(slow, SUPERBLOCKS * GROUP_EMPTY);
        return;
    }
    /* By CPU each is another's; a concurrency id may be this thread's as soon as the other is preempted. */
    ck_assert_uint_le(remote, BLOCKS);
    if (_i == 1) ck_assert_uint_eq(remote, BLOCKS);
}

int main(void) { return run_tests((struct suite){0}); }
