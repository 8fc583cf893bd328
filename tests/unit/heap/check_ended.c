/* SPDX-License-Identifier: Apache-2.0 */
/* check_ended.c: heaps whose threads have ended: what they leave behind serves others, and goes back. */
#include "support/check_backend.h"

#include "heap/heap_table.h"

enum { LEFT = 32 << 10, LEFT_SIZE = 1024, LEFT_BYTES = LEFT * LEFT_SIZE }; /* 32 MiB */

static char *left[LEFT];
static _Atomic bool left_done;

static void *leave_behind(void *size)
{
    pin_to(1);
    for (unsigned i = 0; i < LEFT; i++) left[i] = hoard_malloc((uintptr_t)size);
    left_done = true;
    return NULL;
}

/* Another heap than this thread's: on another CPU, and at the same time. */
static void let_another(void *(*leave)(void *), size_t size)
{
    pthread_t thread;
    pin_to(0);
    hoard_free(hoard_malloc(1));
    pthread_create(&thread, NULL, leave, (void *)(uintptr_t)size);
    while (!left_done) sched_yield();
    pthread_join(thread, NULL);
}

static void **fresh_blocks(size_t size, size_t bytes)
{
    void **blocks = malloc(bytes / size * sizeof *blocks);
    for (size_t i = 0; i < bytes / size; i++) ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(size));
    return blocks;
}

TEST(memory_of_an_ended_thread_serves_others, .times = POLICIES)
{
    use_path(_i, NULL);
    let_another(leave_behind, LEFT_SIZE);
    size_t before = held_bytes();
    for (unsigned i = 0; i < LEFT; i++) hoard_free(left[i]);
    fresh_blocks(512, LEFT_BYTES);
    ck_assert_uint_le(held_bytes(), before + before / 8 + 4 * MIB);
}

/* Freed bit by bit, with mallocs in between that take notice: what is left at the end is never enough to be
 * noticed by its amount, but nothing lives there any more. */
TEST(what_is_wholly_free_is_noticed, .times = POLICIES)
{
    use_path(_i, NULL);
    let_another(leave_behind, LEFT_SIZE);
    size_t before = held_bytes();
    unsigned capacity = SUPERBLOCK / LEFT_SIZE;
    static const unsigned parts[] = {0, 20, 36, 52, 64}; /* of 64 in each superblock */
    for (unsigned part = 1; part < 5; part++) {
        for (unsigned i = 0; i < LEFT; i++) {
            unsigned in = i % capacity;
            if (in >= parts[part - 1] && in < parts[part]) hoard_free(left[i]);
        }
        fresh_blocks(2048, 8 * SUPERBLOCK); /* has the heap look around */
        fresh_blocks(LEFT_SIZE, SUPERBLOCK);
    }
    fresh_blocks(512, LEFT_BYTES);
    ck_assert_uint_le(held_bytes(), before + before / 8 + 8 * MIB);
}

/* Nobody allocates any more, and so nobody's heap looks at what others have freed: the frees do so. In the
 * second half of the runs each superblock loses half of its blocks first, and goes to the global heap. */
TEST(what_is_freed_in_one_burst_goes_back, .times = 2 * POLICIES)
{
    unsigned step = _i < POLICIES ? 1 : 2;
    use_path(_i % POLICIES, NULL);
    let_another(leave_behind, LEFT_SIZE);
    ck_assert_uint_ge(arena_held().now, LEFT_BYTES);
    for (unsigned first = 0; first < step; first++)
        for (unsigned i = first; i < LEFT; i += step) hoard_free(left[i]);
    ck_assert_uint_le(arena_held().now, 12 * MIB);
    ck_assert(heap_is_valid());
}

/* A wide superblock is worth as many as it has slots: few of them hold much. */
enum { WIDE_LEFT = 480, WIDE_SIZE = 64 * KIB };

static void *leave_wide(void *arg)
{
    (void)arg;
    pin_to(1);
    for (unsigned i = 0; i < WIDE_LEFT; i++) left[i] = hoard_malloc(WIDE_SIZE);
    left_done = true;
    return NULL;
}

TEST(wide_blocks_freed_in_one_burst_go_back, .times = POLICIES)
{
    use_path(_i, NULL);
    let_another(leave_wide, 0);
    ck_assert_uint_ge(arena_held().now, WIDE_LEFT * WIDE_SIZE);
    for (unsigned i = 0; i < WIDE_LEFT; i++) hoard_free(left[i]);
    ck_assert_uint_le(arena_held().now, 12 * MIB);
    ck_assert(heap_is_valid());
}

/* One superblock of each class, all of them active when their thread ended. */
static void *leave_each_class(void *arg)
{
    (void)arg;
    pin_to(1);
    for (unsigned c = 1; c < CLASS_CHUNK; c++) left[c] = hoard_malloc(sizeclasses[c].size);
    left_done = true;
    return NULL;
}

TEST(active_superblocks_of_an_ended_thread_come_back, .times = PATHS + 2)
{
    use_path(_i, "slack=0");
    needs_cpus(2); /* or both threads have one heap */
    let_another(leave_each_class, 0);
    size_t before = held_bytes();
    /* If this thread had no CPU just then, the other may have had its id, and so its heap. */
    const struct superblock *one = superblock_of(left[1]);
    needs(cpu.ids == 0 || one->role.heap != rseq_id(), "both threads had one heap");
    for (unsigned c = 1; c < CLASS_CHUNK; c++) hoard_free(left[c]);
    fresh_blocks(CLASS_SIZE_MAX, 30 * SUPERBLOCK); /* as many as there are to have */
    ck_assert_uint_le(held_bytes(), before + 4 * SUPERBLOCK);
}

TEST(trimming_takes_all_that_is_free_everywhere, .times = POLICIES)
{
    use_path(_i, NULL);
    let_another(leave_behind, LEFT_SIZE);
    for (unsigned i = 0; i < LEFT; i++)
        if (i % 4096 != 0) hoard_free(left[i]);
    ck_assert_int_eq(hoard_trim(0), 1);
    ck_assert_uint_le(held_bytes(), LEFT / 4096 * SUPERBLOCK);
    ck_assert(heap_is_valid());
    for (unsigned i = 0; i < LEFT; i += 4096) hoard_free(left[i]);
    ck_assert_int_eq(hoard_trim(0), 1);
    ck_assert_uint_eq(held_bytes(), 0);
    ck_assert_int_eq(hoard_trim(0), 0);
}

enum { AT_ONCE = 4, OF_EACH = 40 };

static void *live_shortly(void *arg)
{
    void **mine = arg;
    for (unsigned i = 0; i < OF_EACH; i++) mine[i] = hoard_malloc(30 + 50 * i);
    for (unsigned i = 0; i < OF_EACH; i += 2) {
        hoard_free(mine[i]);
        mine[i] = NULL;
    }
    return NULL;
}

TEST(short_threads_leave_nothing, .times = POLICIES)
{
    use_path(_i, NULL);
    static void *blocks[AT_ONCE][OF_EACH];
    size_t early = 0;
    unsigned many = shorter(20000, 2000);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KIB);
    for (unsigned n = 0; n < many; n += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (unsigned i = 0; i < AT_ONCE; i++)
            ck_assert_int_eq(pthread_create(&threads[i], &small, live_shortly, blocks[i]), 0);
        for (unsigned i = 0; i < AT_ONCE; i++) {
            pthread_join(threads[i], NULL);
            for (unsigned j = 1; j < OF_EACH; j += 2) hoard_free(blocks[i][j]);
        }
        if (n == many / 10) early = held_bytes();
    }
    /* With a heap for each thread a busy machine may have run the early ones one by one, in one heap. */
    ck_assert_uint_le(held_bytes(), early + AT_ONCE * OF_EACH * SUPERBLOCK);
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
}

int main(void) { return run_tests((struct suite){0}); }
