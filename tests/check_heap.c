/* check_heap.c: the accounts, the emptiness invariant, and memory that comes back from heaps of others. */
#include "check_backend.h"

#include "arena.h"
#include "heap_state.h"
#include "hoard.h"
#include "options.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- accounts -------------------------------------------------------------------------------- */

/* In a bin, fullness as recorded is fullness as it is: nobody else frees. */
static bool is_recorded_right(const struct heap *heap)
{
    for (unsigned c = 1; c < CLASSES; c++)
        for (unsigned g = 0; g < GROUP_EMPTY; g++) {
            const struct list_node *node = heap->bins[c].groups[g].first;
            for (; node != NULL; node = node->next) {
                const struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
                if (superblock_group_of(sb, word_read(sb)) != g) return false;
            }
        }
    return true;
}

static void assert_heaps(bool alone)
{
    ck_assert(heap_is_valid());
    struct heap *heap;
    for (unsigned id = 0; alone && (heap = heap_next(id)) != NULL; id = heap->id + 1u)
        ck_assert(is_recorded_right(heap));
}

enum { OBJECTS = 20000 };

static void *objects[OBJECTS];

static size_t random_size(uint64_t *random)
{
    static const unsigned limits[] = {64, 64, 256, 256, 1024, 1024, 8192, CLASS_SIZE_MAX};
    return random_below(random, limits[random_below(random, 8)] + 1);
}

/* A thread that moves between CPUs leaves superblocks on several heaps, so that some are freed into from
 * outside; only where there is one heap is each free regrouped at once. */
START_TEST(accounts_add_up_under_any_load)
{
    const char *path = use_path(_i, NULL);
    uint64_t random = random_seed();
    for (unsigned step = 0; step < 150000; step++) {
        unsigned i = random_below(&random, 1 + step % OBJECTS); /* the set of live ones swells and shrinks */
        if (objects[i] == NULL) {
            objects[i] = hoard_malloc(random_size(&random));
        } else {
            hoard_free(objects[i]);
            objects[i] = NULL;
        }
        if (step % 1000 == 0) assert_heaps(strcmp(path, "heaps=cpu") != 0);
    }
    for (unsigned i = 0; i < OBJECTS; i++) hoard_free(objects[i]);
    assert_heaps(strcmp(path, "heaps=cpu") != 0);
    ck_assert_uint_eq(live_bytes(), 0);
    hoard_trim(0);
    ck_assert_uint_eq(held_bytes(), 0);
    assert_heaps(true);
}
END_TEST

/* The bound on what a heap keeps: K superblocks, or f of what it has, whichever is more; what is not
 * recorded, and what is active, is less than an eighth and one superblock a class. */
START_TEST(what_is_freed_leaves_the_heap)
{
    static const char *const settings[] = {"slack=0,empty_fraction=1", "slack=4,empty_fraction=2",
                                           "slack=16,empty_fraction=4"};
    static const unsigned fractions[] = {1, 2, 4}, slacks[] = {0, 4, 16};
    use_path(_i % PATHS, settings[_i / PATHS]);
    unsigned f = fractions[_i / PATHS], slack = slacks[_i / PATHS];
    uint64_t random = random_seed();
    for (unsigned i = 0; i < OBJECTS; i++) objects[i] = hoard_malloc(1000);
    heap_get(IDS_MAX - 1); /* a heap that is alone keeps what is partly used */
    for (unsigned left = OBJECTS; left > 0; left--) {
        unsigned i = random_below(&random, left);
        hoard_free(objects[i]);
        objects[i] = objects[left - 1];
        if (left % 500 != 1) continue;
        ck_assert(heap_is_valid());
        struct heap *heap;
        for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u)
            ck_assert(heap->free_eighths <= 8 * slack || heap->free_eighths <= f * heap->superblocks);
    }
    ck_assert_uint_eq(live_bytes(), 0);
}
END_TEST

/* Its frees would go the way of others' if it gave them away. A second heap finds them. */
START_TEST(a_heap_that_is_alone_keeps_what_is_partly_used)
{
    use_path(_i, "path=locked,heaps=single");
    for (unsigned i = 0; i < OBJECTS; i++) objects[i] = hoard_malloc(1000);
    for (unsigned i = 0; i < OBJECTS; i++)
        if (i % 20 != 0) hoard_free(objects[i]);
    struct hoard_stats stats;
    hoard_stats(&stats);
    ck_assert_uint_eq(stats.heaps, 1);
    ck_assert_uint_eq(stats.global_superblocks, 0);
    ck_assert(heap_is_valid());
    heap_scavenge(heap_get(IDS_MAX - 1));
    hoard_stats(&stats);
    ck_assert_uint_gt(stats.global_superblocks, 100);
    ck_assert(heap_is_valid());
    for (unsigned i = 0; i < OBJECTS; i += 20) hoard_free(objects[i]);
    ck_assert_uint_eq(live_bytes(), 0);
}
END_TEST

/* --- threads in turn ------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned turn;
} baton = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void wait_for_turn(unsigned mine, unsigned all)
{
    pthread_mutex_lock(&baton.mutex);
    while (baton.turn % all != mine) pthread_cond_wait(&baton.changed, &baton.mutex);
    pthread_mutex_unlock(&baton.mutex);
}

static void pass_turn(void)
{
    pthread_mutex_lock(&baton.mutex);
    baton.turn++;
    pthread_cond_broadcast(&baton.changed);
    pthread_mutex_unlock(&baton.mutex);
}

enum { PLAYERS = 5, BATCH = 4000, ROUNDS = 60, BATCH_BYTES = BATCH * 320 };

static void *batch[BATCH];
static size_t held_early, held_late;

/* Frees what the one before it allocated, and allocates for the next: every block is freed by another
 * thread, and at each moment only one batch lives (ASPLOS 2000, section 2.2: unbounded blowup). */
static void *play(void *arg)
{
    unsigned mine = (unsigned)(uintptr_t)arg;
    pin_to(mine);
    for (unsigned round = 0; round < ROUNDS; round++) {
        wait_for_turn(mine, PLAYERS);
        for (unsigned i = 0; i < BATCH; i++) {
            hoard_free(batch[i]);
            batch[i] = NULL;
        }
        for (unsigned i = 0; i < BATCH; i++) batch[i] = hoard_malloc(200 + (i + round) % 100);
        if (mine == 0 && round == 5) held_early = held_bytes();
        if (mine == 0 && round == ROUNDS - 1) held_late = held_bytes();
        pass_turn();
    }
    return NULL;
}

static void run_players(void *(*fn)(void *), unsigned n)
{
    pthread_t threads[PLAYERS];
    for (unsigned i = 0; i < n; i++) pthread_create(&threads[i], NULL, fn, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

START_TEST(round_robin_does_not_blow_up)
{
    use_path(_i, NULL);
    run_players(play, PLAYERS);
    ck_assert_uint_le(held_late, held_early + held_early / 4 + MIB);
    ck_assert_uint_le(held_late, 4 * BATCH_BYTES + 2 * MIB);
    ck_assert(heap_is_valid());
    for (unsigned i = 0; i < BATCH; i++) hoard_free(batch[i]);
    ck_assert_uint_eq(live_bytes(), 0);
}
END_TEST

/* One only allocates, the other only frees, both at once. */
enum { RING = 1 << 12, MESSAGES = 400000 };

static _Atomic(void *) ring[RING];

static void *produce_or_consume(void *arg)
{
    bool producer = arg == NULL;
    pin_to(producer);
    for (unsigned i = 0; i < MESSAGES; i++) {
        _Atomic(void *) *place = &ring[i % RING];
        if (producer) {
            char *message = hoard_malloc(16 + i % 500);
            while (atomic_load(place) != NULL) sched_yield();
            atomic_store(place, message);
        } else {
            void *message;
            while ((message = atomic_exchange(place, NULL)) == NULL) sched_yield();
            hoard_free(message);
        }
        if (producer && i == MESSAGES / 10) held_early = held_bytes();
        if (producer && i == MESSAGES - 1) held_late = held_bytes();
    }
    return NULL;
}

START_TEST(a_producer_and_a_consumer_stay_flat)
{
    use_path(_i, NULL);
    run_players(produce_or_consume, 2);
    ck_assert_uint_le(held_late, held_early + held_early / 2 + 2 * MIB);
    ck_assert(heap_is_valid());
    ck_assert_uint_eq(live_bytes(), 0);
}
END_TEST

/* --- heaps of threads that have ended --------------------------------------------------------- */

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
static void let_another_leave(size_t size)
{
    pthread_t thread;
    pin_to(0);
    hoard_free(hoard_malloc(1));
    pthread_create(&thread, NULL, leave_behind, (void *)(uintptr_t)size);
    while (!left_done) sched_yield();
    pthread_join(thread, NULL);
}

static void **fresh_blocks(size_t size, size_t bytes)
{
    void **blocks = malloc(bytes / size * sizeof *blocks);
    for (size_t i = 0; i < bytes / size; i++) ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(size));
    return blocks;
}

START_TEST(memory_of_an_ended_thread_serves_others)
{
    use_path(_i, NULL);
    let_another_leave(LEFT_SIZE);
    size_t before = held_bytes();
    for (unsigned i = 0; i < LEFT; i++) hoard_free(left[i]);
    fresh_blocks(512, LEFT_BYTES);
    ck_assert_uint_le(held_bytes(), before + before / 8 + 4 * MIB);
}
END_TEST

/* Freed bit by bit, with mallocs in between that take notice: what is left at the end is never enough to be
 * noticed by its amount, but nothing lives there any more. */
START_TEST(what_is_wholly_free_is_noticed)
{
    use_path(_i, NULL);
    let_another_leave(LEFT_SIZE);
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
END_TEST

/* One superblock of each class, all of them active when their thread ended. */
static void *leave_each_class(void *arg)
{
    (void)arg;
    pin_to(1);
    for (unsigned c = 1; c < CLASS_CHUNK; c++) left[c] = hoard_malloc(sizeclasses[c].size);
    left_done = true;
    return NULL;
}

START_TEST(active_superblocks_of_an_ended_thread_come_back)
{
    use_path(_i, "slack=0");
    pthread_t thread;
    pin_to(0);
    hoard_free(hoard_malloc(1));
    pthread_create(&thread, NULL, leave_each_class, NULL);
    while (!left_done) sched_yield();
    pthread_join(thread, NULL);
    size_t before = held_bytes();
    /* If this thread had no CPU just then, the other may have had its id, and so its heap. */
    const struct superblock *one = superblock_of(left[1]);
    if (cpu.ids != 0 && one->role.heap == cpu_id()) return;
    for (unsigned c = 1; c < CLASS_CHUNK; c++) hoard_free(left[c]);
    fresh_blocks(CLASS_SIZE_MAX, 30 * SUPERBLOCK); /* as many as there are to have */
    ck_assert_uint_le(held_bytes(), before + 4 * SUPERBLOCK);
}
END_TEST

START_TEST(trimming_takes_all_that_is_free_everywhere)
{
    use_path(_i, NULL);
    let_another_leave(LEFT_SIZE);
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
END_TEST

/* --- many short threads ----------------------------------------------------------------------- */

enum { SHORT_THREADS = 20000, AT_ONCE = 4, OF_EACH = 40 };

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

START_TEST(short_threads_leave_nothing)
{
    use_path(_i, NULL);
    static void *blocks[AT_ONCE][OF_EACH];
    size_t early = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KIB);
    for (unsigned n = 0; n < SHORT_THREADS; n += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (unsigned i = 0; i < AT_ONCE; i++)
            ck_assert_int_eq(pthread_create(&threads[i], &small, live_shortly, blocks[i]), 0);
        for (unsigned i = 0; i < AT_ONCE; i++) {
            pthread_join(threads[i], NULL);
            for (unsigned j = 1; j < OF_EACH; j += 2) hoard_free(blocks[i][j]);
        }
        if (n == SHORT_THREADS / 10) early = held_bytes();
    }
    ck_assert_uint_le(held_bytes(), early + 4 * MIB); /* each thread a heap of its own, on one path */
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
}
END_TEST

int main(void)
{
    TCase *accounts = new_case("accounts", 60), *blowup = new_case("blowup", 60),
          *ended = new_case("ended", 60);
    tcase_add_loop_test(accounts, accounts_add_up_under_any_load, 0, POLICIES);
    tcase_add_loop_test(accounts, what_is_freed_leaves_the_heap, 0, 3 * PATHS);
    tcase_add_loop_test(accounts, a_heap_that_is_alone_keeps_what_is_partly_used, 0, 1);
    tcase_add_loop_test(blowup, round_robin_does_not_blow_up, 0, POLICIES);
    tcase_add_loop_test(blowup, a_producer_and_a_consumer_stay_flat, 0, POLICIES);
    tcase_add_loop_test(ended, memory_of_an_ended_thread_serves_others, 0, POLICIES);
    tcase_add_loop_test(ended, what_is_wholly_free_is_noticed, 0, POLICIES);
    tcase_add_loop_test(ended, active_superblocks_of_an_ended_thread_come_back, 0, PATHS + 2);
    tcase_add_loop_test(ended, trimming_takes_all_that_is_free_everywhere, 0, POLICIES);
    tcase_add_loop_test(ended, short_threads_leave_nothing, 0, POLICIES);
    return run_cases("heap", accounts, blowup, ended, (TCase *)NULL);
}
