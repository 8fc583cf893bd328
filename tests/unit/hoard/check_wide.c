/* SPDX-License-Identifier: Apache-2.0 */
/* check_wide.c: blocks of 4.4 to 128 KiB, whose superblocks have several slots, and their stubs. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/large.h"
#include "arena/reclaim.h"
#include "heap/global_heap.h"
#include "heap/heap_table.h"
#include "hoard/purge_thread.h"

enum { WIDE = CLASS_CHUNK - CLASS_WIDE };

/* Starts the allocator too: the tables of classes are made by its first call. */
static void start_on(int path)
{
    use_path(path, NULL);
    pin_to(0);
    hoard_free(hoard_malloc(1));
    hoard_trim(0);
}

static size_t size_of(unsigned class) { return sizeclasses[class].size; }

static unsigned slots_held(void)
{
    struct hoard_stats stats;
    hoard_stats(&stats);
    return (unsigned)(stats.superblocks + stats.global_superblocks);
}

/* Two superblocks of each class: whole blocks are written, and none is written to by another. */
TEST(blocks_are_apart, .times = PATHS)
{
    start_on(_i);
    static char *blocks[2 * UINT8_MAX];
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; ++class) {
        unsigned n = 2 * sizeclasses[class].capacity;
        size_t size = size_of(class), least = size_of(class - 1) + 1;
        for (unsigned i = 0; i < n; i++) {
            ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(i % 2 ? size : least));
            ck_assert_uint_eq(hoard_usable_size(blocks[i]), size);
            ck_assert_uint_eq((uintptr_t)blocks[i] % LINE, 0);
            memset(blocks[i], (int)i, size);
        }
        for (unsigned i = 0; i < n; i++) ck_assert(all_bytes(blocks[i], size, (uint8_t)i));
        for (unsigned i = 0; i < n; i += 2) hoard_free(blocks[i]);
        for (unsigned i = 0; i < n; i += 2) memset(blocks[i] = hoard_malloc(size), (int)i, size);
        for (unsigned i = 0; i < n; i++) ck_assert(all_bytes(blocks[i], size, (uint8_t)i));
        ck_assert_uint_ge(slots_held(), 2 * sizeclasses[class].slots);
        for (unsigned i = 0; i < n; i++) hoard_free(blocks[i]);
        hoard_trim(0);
        ck_assert_uint_eq(slots_held(), 0);
    }
    assert_all_comes_back();
}

/* A superblock of each class, seen by all its addresses that could start a block. */
TEST(stubs_are_of_starts, .times = PATHS)
{
    start_on(_i);
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; ++class) {
        const struct sizeclass *k = &sizeclasses[class];
        char *start = slot_start(superblock_of(hoard_malloc(k->size)));
        struct arena *arena = pagemap_find(start);
        unsigned wrong = 0;
        for (size_t at = 0; at < k->slots * (size_t)SUPERBLOCK; at += BLOCK_UNIT) {
            ck_assert_ptr_eq(arena_wide(arena, start + at), superblock_of(start));
            const struct stub *stub = arena_stub(arena, superblock_of(start), start + at);
            bool is_start = at % k->size == 0 && at / k->size < k->capacity;
            wrong += (stub != NULL) != is_start || (is_start && stub->block != start + at);
        }
        ck_assert_uint_eq(wrong, 0);
        for (unsigned at = 1; at < BLOCK_UNIT; at++)
            ck_assert_ptr_null(arena_stub(arena, superblock_of(start), start + at));
    }
}

static void free_it(void *block) { hoard_free(block); }

TEST(what_was_never_handed_out_is_told, .times = PATHS)
{
    start_on(_i);
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; class += 4) {
        char *first = hoard_malloc(size_of(class));
        struct superblock *sb = superblock_of(first);
        char *last = slot_start(sb) + (sizeclasses[class].capacity - 1) * size_of(class);
        assert_misuse(free_it, last, "hoard_free", "freed twice");
        size_t rest = sizeclasses[class].slots * (size_t)SUPERBLOCK % size_of(class);
        if (rest == 0) continue;
        assert_misuse(free_it, last + size_of(class), "hoard_free", "not the start of a block");
    }
}

/* What a heap keeps is free: to a second free, to a statistic and to a trim. */
TEST(what_was_freed_last_comes_first_and_is_not_freed_twice, .times = PATHS)
{
    start_on(_i);
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; ++class) {
        struct hoard_stats stats;
        char *blocks[] = {hoard_malloc(size_of(class)), hoard_malloc(size_of(class))};
        for (unsigned i = 0; i < 2; i++) hoard_free(blocks[i]);
        for (unsigned i = 0; i < 2; i++) assert_misuse(free_it, blocks[i], "hoard_free", "freed twice");
        if (cpu.ids != 0) ck_assert_uint_eq(heap_batches[rseq_id()].of[class] / HEAP_BATCH_ONE, 2);
        for (unsigned i = 2; i-- > 0;) ck_assert_ptr_eq(hoard_malloc(size_of(class)), blocks[i]);
        for (unsigned i = 0; i < 2; i++) hoard_free(blocks[i]);
        hoard_stats(&stats);
        ck_assert_uint_eq(stats.live_bytes, 0);
        for (unsigned i = 0; i < 2; i++) assert_misuse(free_it, blocks[i], "hoard_free", "freed twice");
    }
    assert_all_comes_back();
}

/* Of twenty superblocks each free takes one of another: all of them would stay for the blocks that are kept.
 * hoard_stats would send these home, so the accounts tell. */
TEST(kept_blocks_hold_no_memory_back_when_all_is_freed, .times = PATHS)
{
    enum { SIZE = 16384, N = 320 };
    static char *blocks[N];
    start_on(_i);
    for (unsigned i = 0; i < N; i++) ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(SIZE));
    for (unsigned i = 0; i < N; i++) hoard_free(blocks[i * 17 % N]);
    unsigned left = (unsigned)(heap_totals().slots + global_heap_slots());
    ck_assert_msg(left <= 12, "%u slots", left);
    assert_all_comes_back();
}

/* How many blocks this id keeps; on the locked path none. */
static unsigned kept(unsigned class)
{
    return cpu.ids != 0 ? (unsigned)(heap_batches[rseq_id()].of[class] / HEAP_BATCH_ONE) : 0;
}

/* All that one id may keep; bound.md has the sum. */
TEST(an_id_keeps_four_mebibytes_at_most, .times = PATHS)
{
    size_t most = 0;
    start_on(_i);
    for (unsigned class = CLASS_WIDE; class < CLASS_CHUNK; ++class) {
        char *blocks[UINT8_MAX];
        unsigned n = sizeclasses[class].capacity, seen = 0;
        for (unsigned i = 0; i < n; i++) blocks[i] = hoard_malloc(size_of(class));
        for (unsigned i = 0; i < n; i++) {
            hoard_free(blocks[i]);
            if (kept(class) > seen) seen = kept(class);
        }
        most += seen * size_of(class);
    }
    ck_assert_uint_le(most, 4 * MIB);
    ck_assert_uint_ge(most, cpu.ids != 0 ? 3 * MIB : 0);
}

/* The program sleeps: four superblocks of eight blocks each stay for one block that is kept. */
TEST(what_is_kept_and_not_used_goes_home, .times = PATHS)
{
    enum { EACH = 8, N = 4 * EACH, SIZE = 128 * KIB };
    static char *blocks[N];
    start_on(_i);
    unsigned class = sizeclass_of(SIZE);
    ck_assert_uint_eq(sizeclasses[class].capacity, EACH);
    for (unsigned i = 0; i < N; i++) ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(SIZE));
    for (unsigned i = 0; i < N; i++)
        if (i % EACH != 0) hoard_free(blocks[i]);
    heap_deliver_all();
    for (unsigned i = 0; i < N; i += EACH) {
        hoard_free(blocks[i]);
        heap_send_idle_home(false); /* the word has changed: the block was used */
        ck_assert_uint_eq(kept(class), cpu.ids != 0 ? i / EACH + 1 : 0);
    }
    ck_assert_int_eq(heap_keeps_any(), cpu.ids != 0);
    heap_send_idle_home(false);
    ck_assert(!heap_keeps_any() && kept(class) == 0);
    unsigned left = (unsigned)(heap_totals().slots + global_heap_slots());
    ck_assert_msg(left <= 2 * sizeclasses[class].slots, "%u slots", left);
    assert_all_comes_back();
}

/* Where no thread purges, the slow paths look: of a malloc that takes a superblock, and of a large object. */
TEST(the_next_slow_paths_send_home_what_is_kept, .times = PATHS)
{
    use_path(_i, "purge_ms=1");
    pin_to(0);
    for (unsigned round = 0; round < 2; round++) {
        size_t size = round == 0 ? 16 : 200 * KIB;
        hoard_free(hoard_malloc(20000));
        for (unsigned i = 0; i < 40 && kept(sizeclass_of(20000)) != 0; i++) {
            usleep(2000);
            char *block = hoard_malloc(size);
            if (round != 0) hoard_free(block);
            size += round == 0 ? size / 3 / 16 * 16 + 16 : 0;
        }
        ck_assert_uint_eq(kept(sizeclass_of(20000)), 0);
    }
}

static void *sleep_until_kept(void *arg)
{
    arena_wait_for_unused(heap_keeps_any);
    return arg;
}

TEST(a_block_that_is_kept_wakes_the_thread_that_purges, .times = PATHS - 1)
{
    pthread_t thread;
    start_on(_i);
    needs_rseq();
    char *block = hoard_malloc(20000);
    hoard_trim(0);
    block = hoard_realloc(block, 24000); /* the active superblock is new: nothing is unused, or kept */
    heap_deliver_all();
    ck_assert(!heap_keeps_any() && arena_held().unused == 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_until_kept, NULL), 0);
    while (atomic_load(&arena_watched) == 0) sched_yield();
    usleep(20000); /* it sleeps by now */
    hoard_free(block);
    ck_assert_uint_ne(kept(sizeclass_of(24000)), 0);
    pthread_join(thread, NULL);
}

/* Nothing of this program's runs any more but the thread. */
TEST(what_a_program_keeps_that_sleeps_goes_home, .times = PATHS - 1)
{
    use_path(_i, "purge_ms=4");
    needs_rseq();
    hoard_free(hoard_malloc(20000));
    ck_assert(heap_keeps_any());
    purge_thread_start();
    for (unsigned i = 0; i < 1000 && heap_keeps_any(); i++) usleep(10000);
    ck_assert(!heap_keeps_any());
}

static enum superblock_kind kind_of(const void *object) { return superblock_of(object)->kind; }

TEST(what_grows_has_a_span, .times = PATHS)
{
    start_on(_i);
    char *object = hoard_malloc(20000);
    memset(object, 3, 20000);
    ck_assert_int_eq(kind_of(object), SLOT_WIDE);
    object = hoard_realloc(object, 60000);
    ck_assert_int_eq(kind_of(object), SLOT_SPAN);
    char *same = hoard_realloc(object, 60 * KIB);
    ck_assert_ptr_eq(same, object);
    ck_assert(all_bytes(object, 20000, 3));
    object = hoard_realloc(object, 10000);
    ck_assert_int_eq(kind_of(object), SLOT_WIDE);
    ck_assert(all_bytes(object, 10000, 3));
    hoard_free(object);
    assert_all_comes_back();
}

int main(void) { return run_tests((struct suite){0}); }
