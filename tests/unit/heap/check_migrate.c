/* SPDX-License-Identifier: Apache-2.0 */
/* check_migrate.c: restartable sequences that are restarted all the time. More threads than CPUs, each of
 * them moved from CPU to CPU and shot at with signals while it allocates and frees its own and others'
 * blocks: at the end every account has to add up. */
#include "support/check_backend.h"

#include "heap/heap_fast.h"

#include <time.h>

enum { THREADS = 8, MAILBOXES = 256, MINE = 200 };

static _Atomic(void *) mailboxes[MAILBOXES];
static _Atomic bool stop;
static _Atomic unsigned long signals, moves, steps;
static pthread_t threads[THREADS];

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add_explicit(&signals, 1, memory_order_relaxed);
}

/* A block's size and its address are written into both of its ends. */
static void *new_block(uint64_t *random)
{
    static const unsigned limits[] = {64,    64,    300,  2000,
                                      16000, 30000, 30000}; /* large ones: few in a superblock */
    size_t size = 24 + random_below(random, limits[random_below(random, 7)]);
    char *block = hoard_malloc(size);
    if (block == NULL) abort();
    memcpy(block, &size, sizeof size);
    memcpy(block + size - sizeof block, &block, sizeof block);
    return block;
}

static void free_block(void *block)
{
    size_t size;
    void *self;
    memcpy(&size, block, sizeof size);
    memcpy(&self, (char *)block + size - sizeof self, sizeof self);
    if (self != block) abort(); /* two have had it */
    memset(block, 0xee, size < 64 ? size : 64);
    hoard_free(block);
}

static void move_somewhere(uint64_t *random)
{
    pin_to(random_below(random, cpus_at_start()));
    atomic_fetch_add_explicit(&moves, 1, memory_order_relaxed);
}

static void *allocate_and_move(void *arg)
{
    uint64_t random = *(uint64_t *)arg;
    void *mine[MINE] = {NULL};
    while (!stop) {
        unsigned i = random_below(&random, MINE);
        if (mine[i] == NULL)
            mine[i] = new_block(&random);
        else if (random_below(&random, 3) == 0)
            mine[i] = atomic_exchange(&mailboxes[random_below(&random, MAILBOXES)], mine[i]);
        else
            free_block(mine[i]), mine[i] = NULL;
        if (random_below(&random, 100) == 0) move_somewhere(&random);
        atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
    }
    for (unsigned i = 0; i < MINE; i++)
        if (mine[i] != NULL) free_block(mine[i]);
    return NULL;
}

enum { SIGNALS = 1000, MOVES = 100 }; /* at least */

/* So long, and on a machine with much to do until there was enough of both, which the case's time limits. */
static void shoot_for(uint64_t *random, unsigned ms)
{
    struct timespec start, now, pause = {0, 30000};
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        pthread_kill(threads[random_below(random, THREADS)], SIGUSR1);
        if (random_below(random, 4) == 0) nanosleep(&pause, NULL);
        if (random_below(random, 4) == 0) heap_give_all(); /* which takes superblocks from all of them */
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < (long)ms ||
             signals <= SIGNALS || moves <= MOVES);
}

TEST(every_restart_is_right, .times = PATHS)
{
    const char *path = use_path(_i, NULL);
    uint64_t random = random_seed(), seeds[THREADS];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = random_next(&random) | 1;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, allocate_and_move, &seeds[i]), 0);
    }
    shoot_for(&random, shorter(2000, 300));
    stop = true;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < MAILBOXES; i++)
        if (mailboxes[i] != NULL) free_block(mailboxes[i]);
    fprintf(stderr, "%s: %lu steps, %lu signals, %lu moves\n", path, steps, signals, moves);

    assert_all_comes_back();
    ck_assert_uint_gt(signals, SIGNALS);
    ck_assert_uint_gt(moves, MOVES);
}

enum { ROUNDS = 30000 };

/* Of a class whose blocks are carved one by one, and made pending one by one: of the greatest chunks. */
static unsigned big_class(void) { return CLASSES - 1; }

static struct superblock sb; /* on no heap: only sections touch it */
static char *memory;
static _Atomic uint32_t worker_id = UINT32_MAX;

/* The block is freed again and again: its superblock must not come to have more of them than it can hold. */
static void free_once(void)
{
    heap_free(&sb, memory);
    if (superblock_has_pending(&sb)) superblock_take_pending(&sb);
}

static void carve_once(void) { heap_carve(big_class()); }

/* On a busy machine it gets another id now and then. */
static void *go_on(void *what)
{
    pin_to(1);
    do {
        atomic_store_explicit(&worker_id, rseq_id(), memory_order_relaxed);
        (*(void (**)(void))what)();
    } while (!stop);
    return NULL;
}

/* The word must stay as it is from the fence on; without one a section may commit still. */
static bool stays_unowned(void)
{
    uint64_t word = word_read(&sb);
    for (unsigned i = 0; i < 30; i++)
        if (word_read(&sb) != word) return false;
    return true;
}

/* Until the other is at it; not for ever, since it may not be running. */
static void wait_for_commit(uint64_t before)
{
    for (unsigned i = 0; i < 2000 && word_read(&sb) == before; i++) continue;
}

/* Has frees of an id reach the superblock; or mallocs. */
static void set_owner(unsigned id, bool on)
{
    superblock_set_role(&sb, (union superblock_role){.owner = (uint16_t)(on ? id : OWNER_NONE),
                                                     .heap = (uint16_t)(on ? id : HEAP_NONE),
                                                     .regroup_at = UINT16_MAX});
}

static void set_active(unsigned id, bool on)
{
    __atomic_store_n(&heap_rows[id].active[big_class()], heap_entry(on ? &sb : NULL), __ATOMIC_RELEASE);
}

static void make_superblock(void)
{
    memory = aligned_alloc(SUPERBLOCK, SUPERBLOCK);
    sb = (struct superblock){
        .origin = memory - BLOCK_BIAS, .free_origin = memory - BLOCK_BIAS, .kind = SLOT_BLOCKS, .queued = 1};
    set_owner(0, false);
    superblock_format(&sb, big_class());
}

/* The other has to have been there for a round to mean something: on a busy machine it may wait for its CPU.
 */
static bool goes_on(unsigned round, unsigned commits)
{
    return round < ROUNDS || commits < ROUNDS / 100; /* or for ever, which Check ends */
}

static void assert_fence_ends(void (*what)(void), void (*let)(unsigned id, bool on))
{
    unsigned seen = 0, commits = 0;
    pin_to(0);
    hoard_free(hoard_malloc(1));
    make_superblock();
    pthread_create(&threads[0], NULL, go_on, &what);
    while (worker_id == UINT32_MAX) sched_yield();
    for (unsigned round = 0; goes_on(round, commits); round++) {
        superblock_format(&sb, big_class());
        uint64_t before = word_read(&sb);
        unsigned id = worker_id;
        let(id, true);
        wait_for_commit(before);
        let(id, false);
        rseq_fence();
        seen += !stays_unowned();
        commits += word_read(&sb) != before;
    }
    stop = true;
    pthread_join(threads[0], NULL);
    ck_assert_uint_eq(seen, 0);
}

TEST(after_the_fence_no_free_commits, .times = 2)
{
    use_path(_i, NULL);
    needs_rseq();
    needs_cpus(2);
    assert_fence_ends(free_once, set_owner);
}

TEST(after_the_fence_nothing_is_carved, .times = 2)
{
    use_path(_i, NULL);
    needs_rseq();
    needs_cpus(2);
    assert_fence_ends(carve_once, set_active);
}

/* One works, the other takes all of its superblocks away, as fast as it can. */
static void *work(void *arg)
{
    uint64_t random = *(uint64_t *)arg;
    static void *mine[5000];
    pin_to(1);
    while (!stop) {
        unsigned i = random_below(&random, 5000);
        if (mine[i] != NULL) free_block(mine[i]);
        mine[i] = new_block(&random);
        if (i % 4 == 0) mine[i] = atomic_exchange(&mailboxes[i % MAILBOXES], mine[i]);
    }
    for (unsigned i = 0; i < 5000; i++)
        if (mine[i] != NULL) free_block(mine[i]);
    return NULL;
}

TEST(superblocks_are_pulled_from_under_a_thread, .times = PATHS)
{
    use_path(_i, NULL);
    uint64_t random = random_seed();
    pin_to(0);
    pthread_create(&threads[0], NULL, work, &random);
    for (unsigned round = 0; round < 20000; round++) {
        heap_give_all();
        void *block = atomic_exchange(&mailboxes[round % MAILBOXES], NULL);
        if (block != NULL) free_block(block);
    }
    stop = true;
    pthread_join(threads[0], NULL);
    for (unsigned i = 0; i < MAILBOXES; i++)
        if (mailboxes[i] != NULL) free_block(mailboxes[i]);
    assert_all_comes_back();
}

int main(void) { return run_tests((struct suite){0}); }
