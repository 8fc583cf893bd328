/* SPDX-License-Identifier: Apache-2.0 */
/* check_heap.c: the accounts, the emptiness invariant, and memory that goes from thread to thread. */
#include "support/check_backend.h"

#include "heap/global_heap.h"
#include "heap/heap_reclaim.h"
#include "heap/heap_remote.h"
#include "heap/heap_table.h"
#include "support/step.h"

#include <semaphore.h>

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
        ck_assert(is_recorded_right(heap) && atomic_load(&heap->visited) == 0);
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
TEST(accounts_add_up_under_any_load, .times = POLICIES)
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

/* The bound on what a heap keeps: K superblocks, or f of what it has, whichever is more; what is not
 * recorded, and what is active, is less than an eighth and one superblock a class. */
TEST(what_is_freed_leaves_the_heap, .times = 3 * PATHS)
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
            ck_assert(heap->free_eighths <= 8 * slack || heap->free_eighths <= f * heap->slots);
    }
    ck_assert_uint_eq(live_bytes(), 0);
}

/* Its frees would go the way of others' if it gave them away. A second heap finds them. */
TEST(a_heap_that_is_alone_keeps_what_is_partly_used)
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
    const struct heap *second = heap_get(IDS_MAX - 1);
    ck_assert(heap_is_valid()); /* what the first one keeps is too much now, until somebody looks */
    heap_scavenge(second);
    hoard_stats(&stats);
    ck_assert_uint_gt(stats.global_superblocks, 100);
    ck_assert(heap_is_valid());
    for (unsigned i = 0; i < OBJECTS; i += 20) hoard_free(objects[i]);
    ck_assert_uint_eq(live_bytes(), 0);
}

/* Empty superblocks that the heap has not used between two looks are no longer its own; those that it used
 * stay. */
TEST(what_a_heap_keeps_empty_goes_when_it_is_not_used, .times = PATHS)
{
    enum { MANY = 600, SOME = 200 };
    use_path(_i, "purge_ms=60000,slack=8");
    pin_to(0);
    for (unsigned i = 0; i < MANY; i++) objects[i] = hoard_malloc(1000);
    for (unsigned i = 0; i < MANY; i++) hoard_free(objects[i]);
    const struct heap *heap = heap_mine();
    unsigned kept = heap->empties;
    ck_assert_uint_ge(kept, 4);
    ck_assert(heap_keeps_any());
    for (unsigned i = 0; i < SOME; i++) objects[i] = hoard_malloc(1000);
    ck_assert_uint_lt(heap->empties, kept);
    for (unsigned i = 0; i < SOME; i++) hoard_free(objects[i]);
    size_t unused = arena_held().unused;
    heap_send_idle_home(false);
    ck_assert_uint_ge(heap->empties, 4);
    heap_send_idle_home(false);
    ck_assert_uint_eq(heap->empties, 0);
    ck_assert_uint_ge(arena_held().unused, unused + (size_t)4 * SUPERBLOCK);
    ck_assert(!heap_keeps_any() && heap_is_valid());
}

/* So are active superblocks without a live block, of any size; those that have one at a look stay. */
TEST(an_active_superblock_goes_when_it_is_empty_at_two_looks, .times = PATHS)
{
    static const size_t sizes[] = {16, 100, 1000, 5000, 20000, 100000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    use_path(_i, "purge_ms=60000");
    pin_to(0);
    for (unsigned i = 0; i < SIZES; i++) objects[i] = hoard_malloc(sizes[i]);
    for (unsigned i = 1; i < SIZES; i++) hoard_free(objects[i]);
    const struct heap *heap = heap_mine();
    heap_send_idle_home(true); /* what was kept goes home to its superblock */
    heap_send_idle_home(true);
    objects[1] = hoard_malloc(sizes[1]); /* after a look that found none */
    unsigned slots = heap->slots;
    ck_assert_uint_ge(slots, 2);
    heap_send_idle_home(true);
    heap_send_idle_home(true);
    ck_assert_uint_le(heap->slots, 2);
    ck_assert_uint_ge(arena_held().unused, (size_t)SUPERBLOCK);
    ck_assert(heap_is_valid());
    hoard_free(objects[1]);
    hoard_free(objects[0]);
    heap_send_idle_home(true);
    ck_assert_uint_eq(heap->slots, 2); /* one look is not two */
    heap_send_idle_home(true);
    ck_assert_uint_eq(heap->slots, 0);
    for (unsigned i = 0; i < SIZES; i++) hoard_free(memset(hoard_malloc(sizes[i]), 1, sizes[i]));
    ck_assert(heap_is_valid());
    ck_assert_uint_eq(live_bytes(), 0);
}

static void *sleep_until_kept(void *arg)
{
    arena_wait_for_unused(heap_keeps_any);
    return arg;
}

TEST(a_superblock_that_is_kept_empty_wakes_the_thread_that_purges, .times = PATHS)
{
    enum { SOME = 200 };
    pthread_t thread;
    use_path(_i, "purge_ms=60000");
    pin_to(0);
    for (unsigned i = 0; i < SOME; i++) objects[i] = hoard_malloc(1000);
    ck_assert(!heap_keeps_any() && arena_held().unused == 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_until_kept, NULL), 0);
    while (atomic_load(&arena_watched) == 0) sched_yield();
    usleep(20000); /* it sleeps by now */
    for (unsigned i = 0; i < SOME; i++) hoard_free(objects[i]);
    ck_assert_uint_ne(heap_mine()->empties, 0);
    pthread_join(thread, NULL);
}

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

TEST(round_robin_does_not_blow_up, .times = POLICIES)
{
    use_path(_i, NULL);
    run_players(play, PLAYERS);
    ck_assert_uint_le(held_late, held_early + held_early / 4 + MIB);
    ck_assert_uint_le(held_late, 4 * BATCH_BYTES + 2 * MIB);
    ck_assert(heap_is_valid());
    for (unsigned i = 0; i < BATCH; i++) hoard_free(batch[i]);
    ck_assert_uint_eq(live_bytes(), 0);
}

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

TEST(a_producer_and_a_consumer_stay_flat, .times = POLICIES)
{
    use_path(_i, NULL);
    run_players(produce_or_consume, 2);
    ck_assert_uint_le(held_late, held_early + held_early / 2 + 2 * MIB);
    ck_assert(heap_is_valid());
    ck_assert_uint_eq(live_bytes(), 0);
}

static uint64_t *row_slot;
static struct superblock *row_active;

/* As threads of the heap that displace what is active, without the lock. */
static void displace_or_not(void)
{
    static uint64_t random = 1;
    *row_slot = heap_entry(random_below(&random, 2) ? row_active : NULL);
}

/* Who has displaced a superblock has it in hand, or on a list. No other may take it from the heap then. (The
 * row is another thread's only where there is no lock; but what looks at it is the same code.) */
TEST(what_is_displaced_just_now_is_not_taken)
{
    use_path(2, NULL);
    struct superblock *sb = superblock_of(hoard_malloc(1000));
    struct heap *heap = heap_mine();
    row_slot = heap_slot(heap, sb->class);
    row_active = heap_active(heap, sb->class);
    ck_assert_ptr_eq(row_active, sb);
    sb->group = 1; /* as that of one that was in a bin before */
    bool steps = step_start();
    step_look = displace_or_not;
    for (unsigned i = 0; i < (steps ? 300 : 1); i++) {
        heap_enqueue(sb);
        if (steps) step_begin();
        heap_give_idle();
        if (steps) step_end();
        ck_assert_uint_eq(sb->role.heap, heap->id);
    }
    *row_slot = heap_entry(sb);
    ck_assert(heap_is_valid());
}

static void *free_first(void *block)
{
    pin_to(1);
    errno = 77;
    hoard_free(block);
    return errno == 77 ? NULL : block;
}

/* The first that a thread does on a CPU, whose heap is made then, and is asked for its memory. */
TEST(free_keeps_errno, .times = POLICIES)
{
    use_path(_i, NULL);
    pin_to(0);
    hoard_free(hoard_malloc(1000)); /* the next one is not the first there */
    void *block = memset(hoard_malloc(1000), 1, 1000);
    ck_assert_ptr_null(in_thread(free_first, block));
    ck_assert_uint_eq(live_bytes(), 0);
}

static sem_t is_held, may_go;

static void take_all(void)
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) lock_take(&heap->lock);
}

static void give_all(void)
{
    struct heap *heap;
    for (unsigned id = 0; (heap = heap_next(id)) != NULL; id = heap->id + 1u) lock_give(&heap->lock);
}

/* As who is preempted in the middle of it: the locks of all heaps, or those of the global heap and the
 * caches'. */
static void *hold(void *global)
{
    (global ? global_heap_fork_prepare : take_all)();
    sem_post(&is_held);
    sem_wait(&may_go);
    (global ? global_heap_fork_parent : give_all)();
    return NULL;
}

/* Mallocs get superblocks from elsewhere meanwhile, up to what detours allow, and frees leave what is due. */
TEST(nobody_waits_for_who_holds_a_lock, .times = 4)
{
    enum { SIZE = 1024, BLOCKS = HEAP_DETOURS / 2 * (SUPERBLOCK / SIZE) };
    pthread_t holder;
    use_path(_i / 2, NULL);
    pin_to(0);
    for (unsigned i = 0; i < BLOCKS / 2; i++) ck_assert_ptr_nonnull(objects[i] = hoard_malloc(SIZE));
    sem_init(&is_held, 0, 0);
    sem_init(&may_go, 0, 0);
    ck_assert_int_eq(pthread_create(&holder, NULL, hold, _i % 2 ? &may_go : NULL), 0);
    sem_wait(&is_held);
    for (unsigned i = BLOCKS / 2; i < BLOCKS; i++) ck_assert_ptr_nonnull(objects[i] = hoard_malloc(SIZE));
    for (unsigned i = 0; i < BLOCKS; i++) hoard_free(objects[i]);
    sem_post(&may_go);
    pthread_join(holder, NULL);
    hoard_free(hoard_malloc(CLASS_SIZE_MAX)); /* what was deferred is done by the next who has the lock */
    ck_assert(heap_is_valid());
    ck_assert_uint_eq(live_bytes(), 0);
    hoard_trim(0);
    ck_assert_uint_eq(held_bytes(), 0);
}

int main(void) { return run_tests((struct suite){0}); }
