/* SPDX-License-Identifier: Apache-2.0 */
/* check_kept.c: spans that are kept for the next large object. */
#include "support/check_backend.h"

#include "arena/arena_internal.h"
#include "arena/kept_spans.h"
#include "arena/large.h"
#include "base/options.h"
#include "os/pages.h"

#include <pthread.h>
#include <sched.h>

/* A thread that moves to another CPU between two calls would use another set. */
static void start_on_one_cpu(void)
{
    cpu_set_t cpus;
    start_arenas();
    arena_purge_if_due(); /* the first call purges */
    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    ck_assert_int_eq(sched_setaffinity(0, sizeof cpus, &cpus), 0);
}

static void *take(unsigned slots)
{
    void *object = large_alloc(slots * (size_t)SUPERBLOCK - 100, 16, false, NULL);
    ck_assert_ptr_nonnull(object);
    return object;
}

static void give(void *object) { large_free(pagemap_find(object), object); }

START_TEST(a_freed_span_serves_the_next_object_of_its_size)
{
    unsigned slots = (unsigned)_i;
    bool zeroed = true;
    size_t size = slots * (size_t)SUPERBLOCK;
    char *object = take(slots), *other = take(slots);
    memset(object, 1, size);
    give(object);
    struct arena *arena = pagemap_find(object);
    ck_assert(!large_starts_at(arena, object)); /* a second free is found */
    ck_assert_uint_eq(kept_spans_bytes(), size);
    ck_assert_uint_eq(arena_held().unused, size);
    ck_assert_uint_eq(arena_held().now, 2 * size);
    ck_assert_uint_eq(large_totals().bytes, size);
    ck_assert_ptr_eq(large_alloc(size, SUPERBLOCK, true, &zeroed), object);
    ck_assert(!zeroed && object[size - 1] == 1);
    ck_assert_uint_eq(arena_slot(arena, object)->kind, SLOT_SPAN_CHUNK);
    ck_assert_uint_eq(large_size(arena, object), size);
    ck_assert_uint_eq(kept_spans_bytes(), 0);
    give(object);
    give(other);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
}
END_TEST

START_TEST(a_set_keeps_so_many_spans_and_no_long_ones)
{
    void *objects[KEPT_SLOTS + 1][KEPT_EACH + 2];
    for (unsigned n = 0; n <= KEPT_SLOTS; n++)
        for (unsigned i = 0; i < KEPT_EACH + 2; i++) objects[n][i] = take(n + 1);
    size_t slots = 0;
    for (unsigned n = 0; n <= KEPT_SLOTS; n++) {
        for (unsigned i = 0; i < KEPT_EACH + 2; i++) give(objects[n][i]);
        if (n < KEPT_SLOTS) slots += (n + 1) * KEPT_EACH;
        ck_assert_uint_eq(kept_spans_bytes(), slots * SUPERBLOCK);
    }
    ck_assert_uint_eq(large_totals().objects, 0);
    for (unsigned n = 0; n < KEPT_SLOTS; n++) /* those used last serve first */
        ck_assert_ptr_eq(take(n + 1), objects[n][KEPT_EACH - 1]);
}
END_TEST

/* Marks all free slots as another set's. */
static void forget_sets(struct arena *arena)
{
    for (unsigned i = 0; i < ARENA_SLOTS; i++)
        if ((atomic_load(&arena->used) >> i & 1) == 0) arena->slots[i].group = KEPT_SETS - 1;
}

/* Here a thread of the next id is the one that had the span first. */
START_TEST(a_span_comes_back_to_the_set_of_who_had_it_first)
{
    void *own = take(2);
    struct arena *arena = pagemap_find(own);
    forget_sets(arena);
    void *others = take(2);
    ck_assert_ptr_eq(pagemap_find(others), arena);
    struct superblock *first = arena_slot(arena, others);
    unsigned set = arena_slot(arena, own)->group;
    ck_assert_uint_eq(first->group, set);
    first->group = (uint8_t)((set + 1) % KEPT_SETS);
    give(own);
    give(others);
    ck_assert_uint_eq(kept_spans_bytes(), 4 * SUPERBLOCK);
    ck_assert_ptr_eq(take(2), own);
    ck_assert_uint_eq(kept_spans_bytes(), 2 * SUPERBLOCK);
    void *new = take(2);
    ck_assert_ptr_ne(new, others);
    ck_assert_uint_eq(arena_slot(pagemap_find(new), new)->group, set);
    kept_spans_give_own();
    ck_assert_uint_eq(kept_spans_bytes(), 2 * SUPERBLOCK);
    kept_spans_give_all();
    ck_assert_uint_eq(kept_spans_bytes(), 0);
}
END_TEST

/* An object that has grown to slots of its own is of a set too, and so is one that has shrunk. */
START_TEST(a_span_that_was_resized_has_its_set)
{
    void *small = take(1), *next = take(1);
    struct arena *arena = pagemap_find(small);
    unsigned set = arena_slot(arena, small)->group;
    forget_sets(arena);
    char *large = large_move(arena, small, 40 * (size_t)SUPERBLOCK);
    ck_assert_ptr_nonnull(large);
    struct superblock *first = arena_slot(pagemap_find(large), large);
    ck_assert_uint_eq(first->group, set);
    ck_assert(large_resize(pagemap_find(large), large, SUPERBLOCK));
    arena_purge(0);
    give(large);
    ck_assert_uint_eq(kept_spans_bytes(), SUPERBLOCK);
    ck_assert_ptr_eq(take(1), large);
    give(next);
}
END_TEST

/* Otherwise a program would hold more than without kept spans. */
START_TEST(kept_memory_serves_before_clean_slots)
{
    bool clean;
    for (unsigned n = 1; n <= KEPT_SLOTS; n++) give(take(n));
    size_t held = arena_held().now;
    ck_assert_uint_eq(kept_spans_bytes(), held);
    for (unsigned i = 0; i < held / SUPERBLOCK; i++) {
        ck_assert_ptr_nonnull(arena_take_slot(SLOT_BLOCKS, false, &clean));
        ck_assert(!clean);
        ck_assert_uint_eq(arena_held().now, held);
    }
    ck_assert_uint_eq(arena_held().unused, 0);
}
END_TEST

/* Free slots have memory enough, but lie between kept ones. */
START_TEST(kept_spans_are_free_for_a_longer_one)
{
    void *objects[3 * KEPT_EACH];
    for (unsigned i = 0; i < 3 * KEPT_EACH; i++) objects[i] = take(1);
    for (unsigned i = 0; i < 2 * KEPT_EACH; i++) give(objects[i]);
    size_t held = arena_held().now;
    ck_assert_uint_ge(arenas.dirty_slots, KEPT_SLOTS + 1);
    take(KEPT_SLOTS + 1);
    ck_assert_uint_eq(arena_held().now, held);
    ck_assert_uint_eq(kept_spans_bytes(), 0);
}
END_TEST

START_TEST(a_purge_makes_kept_spans_free)
{
    char *object = take(2);
    give(object);
    ck_assert_uint_eq(arena_purge(options.purge_ms), 0); /* it is not old enough */
    ck_assert_uint_eq(kept_spans_bytes(), 0);
    ck_assert_uint_eq(arena_held().unused, 2 * SUPERBLOCK);
    ck_assert_uint_eq(arena_purge(0), 2 * SUPERBLOCK);
    give(take(3));
    ck_assert_uint_eq(arena_purge(0), 3 * SUPERBLOCK);
    ck_assert_uint_eq(arena_held().now, 0);
}
END_TEST

static void pass_ms(unsigned ms)
{
    uint64_t start = pages_clock();
    while (pages_clock() - start <= ms) sched_yield();
}

/* Slots that have been free for long go back, also from an arena with kept spans: those follow. */
START_TEST(kept_spans_keep_no_old_slots)
{
    enum { DIRTY = 5, MS = 20 };
    void *objects[KEPT_EACH + DIRTY];
    for (unsigned i = 0; i < KEPT_EACH + DIRTY; i++) objects[i] = take(1);
    for (unsigned i = 0; i < KEPT_EACH + DIRTY; i++) give(objects[i]);
    ck_assert_uint_eq(kept_spans_bytes(), KEPT_EACH * SUPERBLOCK);
    pass_ms(MS);
    ck_assert_uint_eq(arena_purge(MS), DIRTY * SUPERBLOCK);
    ck_assert_uint_eq(kept_spans_bytes(), 0);
    ck_assert_uint_eq(arena_held().now, KEPT_EACH * SUPERBLOCK);
    pass_ms(MS);
    ck_assert_uint_eq(arena_purge(MS), KEPT_EACH * SUPERBLOCK);
    ck_assert_uint_eq(arena_held().now, 0);
}
END_TEST

START_TEST(nothing_is_kept_where_all_goes_back_at_once)
{
    void *object = take(1);
    options.purge_ms = 0;
    give(object);
    ck_assert_uint_eq(kept_spans_bytes(), 0);
    ck_assert_uint_eq(arena_held().now, 0);
}
END_TEST

static void *wait_for_unused(void *arg)
{
    arena_wait_for_unused();
    return arg;
}

START_TEST(a_kept_span_wakes_the_thread_that_purges)
{
    pthread_t waiter;
    void *object = take(1), *result;
    ck_assert_int_eq(pthread_create(&waiter, NULL, wait_for_unused, object), 0);
    for (unsigned i = 0; i < 100; i++) sched_yield(); /* often it sleeps by then, and need not */
    give(object);
    ck_assert_int_eq(pthread_join(waiter, &result), 0); /* the case's timeout ends a wait in vain */
    ck_assert_ptr_eq(result, object);
}
END_TEST

/* --- several threads ------------------------------------------------------------------------- */

enum { WORKERS = 6, LIVE = 8 };

static _Atomic bool ends;

/* Objects are this thread's alone: their first and last words stay. */
static void *work(void *seed)
{
    uint64_t state = (uintptr_t)seed, *objects[LIVE] = {NULL};
    size_t words[LIVE] = {0};
    unsigned steps = steps_of(30000);
    for (unsigned i = 0; i < steps; i++) {
        unsigned at = random_below(&state, LIVE), slots = 1 + random_below(&state, KEPT_SLOTS + 1);
        if (objects[at] != NULL) {
            ck_assert_uint_eq(objects[at][0], objects[at][words[at]]);
            ck_assert_uint_eq(objects[at][0] >> 32, (uintptr_t)seed);
            give(objects[at]);
        }
        objects[at] = take(slots);
        words[at] = (slots * (size_t)SUPERBLOCK - 100) / 8 - 1;
        objects[at][0] = objects[at][words[at]] = (uint64_t)(uintptr_t)seed << 32 | i;
    }
    for (unsigned at = 0; at < LIVE; at++)
        if (objects[at] != NULL) give(objects[at]);
    return NULL;
}

static void *purge(void *arg)
{
    while (!ends) {
        kept_spans_give_all();
        arena_purge(0);
        sched_yield();
    }
    return arg;
}

START_TEST(threads_share_sets)
{
    pthread_t workers[WORKERS], purger;
    ck_assert_int_eq(pthread_create(&purger, NULL, purge, NULL), 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&workers[i], NULL, work, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < WORKERS; i++) ck_assert_int_eq(pthread_join(workers[i], NULL), 0);
    ends = true;
    ck_assert_int_eq(pthread_join(purger, NULL), 0);
    ck_assert_uint_eq(large_totals().objects, 0);
    arena_purge(0);
    ck_assert_uint_eq(arena_held().now, 0);
    ck_assert_uint_eq(arenas.dirty_slots, 0);
}
END_TEST

int main(void)
{
    TCase *one = new_case("one thread", 10), *many = new_case("threads", 120);
    tcase_add_checked_fixture(one, start_on_one_cpu, NULL);
    tcase_add_checked_fixture(many, start_arenas, NULL);
    tcase_add_loop_test(one, a_freed_span_serves_the_next_object_of_its_size, 1, KEPT_SLOTS + 1);
    tcase_add_test(one, a_set_keeps_so_many_spans_and_no_long_ones);
    tcase_add_test(one, a_span_comes_back_to_the_set_of_who_had_it_first);
    tcase_add_test(one, a_span_that_was_resized_has_its_set);
    tcase_add_test(one, kept_memory_serves_before_clean_slots);
    tcase_add_test(one, kept_spans_are_free_for_a_longer_one);
    tcase_add_test(one, a_purge_makes_kept_spans_free);
    tcase_add_test(one, kept_spans_keep_no_old_slots);
    tcase_add_test(one, nothing_is_kept_where_all_goes_back_at_once);
    tcase_add_test(one, a_kept_span_wakes_the_thread_that_purges);
    tcase_add_test(many, threads_share_sets);
    return run_cases("kept", one, many, (TCase *)NULL);
}
