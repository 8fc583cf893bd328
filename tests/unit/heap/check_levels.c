/* SPDX-License-Identifier: Apache-2.0 */
/* check_levels.c: CPUs that share a cache trade superblocks among themselves first. One thread acts as any of
 * eight CPUs here: it says on which it is, and which id it has. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/false_sharing.h"
#include "heap/global_heap.h"
#include "heap/heap_policy.h"
#include "heap/heap_remote.h"
#include "heap/heap_table.h"

enum { CPUS = 8 };

#define TWO_CACHES "topology=0.0:1.0:2.0:3.0:4.1:5.1:6.1:7.1"
#define ONE_CACHE "topology=0.0:1.0:2.0:3.0:4.0:5.0:6.0:7.0"

static unsigned cache_of(unsigned on) { return on / 4; } /* where there are two */

static __thread uint32_t acted_cpu, acted_id;

static intptr_t from_thread(const void *at) { return (const char *)at - (char *)__builtin_thread_pointer(); }

/* With a concurrency id, which has nothing to do with the CPU. */
static void act(unsigned on, unsigned id)
{
    acted_cpu = on;
    acted_id = id;
    heap_of_thread = (uint16_t)(id + 1);
}

static void start(int path, const char *options)
{
    use_path(path, options);
    hoard_free(hoard_malloc(1));
    cpu.now_at = from_thread(&acted_cpu);
    rseq_id_at = from_thread(&acted_id);
    act(0, 0);
}

enum { CLASS = 4, OTHER = 9 };

static struct superblock *new_superblock(unsigned class, unsigned live)
{
    bool clean;
    struct superblock *sb = arena_take(1, SLOT_BLOCKS, ARENA_PLAIN, &clean);
    ck_assert_ptr_nonnull(sb);
    superblock_format(sb, class);
    sb->role = (union superblock_role){.owner = OWNER_NONE, .heap = HEAP_NONE};
    while (live-- > 0) superblock_pop(sb);
    return sb;
}

static void give_on(unsigned on, struct superblock *sb)
{
    act(on, on);
    global_heap_give(sb, HEAP_NONE);
    global_heap_settle();
    ck_assert(global_heap_is_valid());
}

static struct superblock *take_on(unsigned on, unsigned class)
{
    act(on, on);
    struct superblock *sb = global_heap_take(class, on);
    if (sb == NULL) return NULL;
    ck_assert(global_heap_is_valid());
    ck_assert_uint_eq(sb->class, class);
    ck_assert_uint_eq(sb->role.heap, HEAP_NONE);
    ck_assert(!list_holds(&sb->link));
    return sb;
}

static unsigned count_on(unsigned on, unsigned class)
{
    unsigned n = 0;
    while (take_on(on, class) != NULL) n++;
    return n;
}

TEST(what_is_given_is_had_near, .times = PATHS)
{
    start(_i, TWO_CACHES);
    for (unsigned giver = 0; giver < CPUS; giver++)
        for (unsigned taker = 0; taker < CPUS; taker++) {
            struct superblock *sb = new_superblock(CLASS, 1);
            give_on(giver, sb);
            ck_assert_ptr_null(take_on((giver + 4) % CPUS, CLASS));
            ck_assert_ptr_null(take_on(giver, OTHER));
            ck_assert_ptr_eq(take_on(cache_of(giver) * 4 + taker % 4, CLASS), sb);
            ck_assert_uint_eq(superblock_live(sb), 1);
        }
}

TEST(an_empty_one_serves_any_class_near, .times = PATHS)
{
    static const unsigned classes[] = {1, CLASS, OTHER, CLASS_WIDE - 1, CLASS_CHUNK};
    start(_i, TWO_CACHES);
    for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        struct superblock *sb = new_superblock(CLASS, 0);
        give_on(5, sb);
        ck_assert_ptr_null(take_on(1, CLASS));
        ck_assert_ptr_eq(take_on(6, classes[i]), sb);
        ck_assert_uint_eq(superblock_live(sb), 0);
        ck_assert(superblock_is_valid(sb));
        ck_assert_int_eq(sb->kind, classes[i] >= CLASS_CHUNK ? SLOT_CHUNKS : SLOT_BLOCKS);
    }
}

TEST(an_empty_one_goes_when_nobody_took_one, .times = PATHS)
{
    start(_i, TWO_CACHES);
    size_t unused = arena_held().unused;
    give_on(1, new_superblock(CLASS, 0));
    give_on(5, new_superblock(CLASS, 0));
    give_on(5, new_superblock(CLASS, 0));
    ck_assert_ptr_nonnull(take_on(6, OTHER));
    heap_send_idle_home(false);
    ck_assert_uint_eq(arena_held().unused, unused + SUPERBLOCK);
    ck_assert(global_heap_keeps_any());
    ck_assert_ptr_null(take_on(1, CLASS));
    heap_send_idle_home(false);
    ck_assert_uint_eq(arena_held().unused, unused + (size_t)2 * SUPERBLOCK);
    ck_assert(!global_heap_keeps_any() && global_heap_is_valid());
}

TEST(what_is_too_much_goes_up, .times = PATHS)
{
    start(_i, TWO_CACHES);
    for (unsigned i = 0; i < 40; i++) give_on(i % 4, new_superblock(CLASS, 1));
    ck_assert_uint_eq(global_heap_slots(), 40);
    ck_assert_uint_eq(count_on(5, CLASS), 40 - GLOBAL_HEAP_CACHE_MAX);
    ck_assert_uint_eq(count_on(2, CLASS), GLOBAL_HEAP_CACHE_MAX);
    for (unsigned i = 0; i < 40; i++) give_on(i % 4, new_superblock(CLASS, 0));
    ck_assert_uint_eq(global_heap_slots(), GLOBAL_HEAP_CACHE_MAX); /* the others are the arenas' */
    ck_assert_uint_eq(count_on(5, OTHER), 0);
    ck_assert_uint_eq(count_on(2, OTHER), GLOBAL_HEAP_CACHE_MAX);
}

/* What nobody near asks for does not keep out what they trade. */
TEST(what_is_not_asked_for_goes_up, .times = PATHS)
{
    start(_i, TWO_CACHES);
    for (unsigned i = 0; i < GLOBAL_HEAP_CACHE_MAX; i++)
        give_on(0, new_superblock(i % 2 != 0 ? CLASS : OTHER, i % 2));
    for (unsigned i = 0; i < 3 * GLOBAL_HEAP_CACHE_MAX; i++) give_on(0, new_superblock(OTHER, 1));
    ck_assert_uint_eq(count_on(5, CLASS), GLOBAL_HEAP_CACHE_MAX / 2);
    ck_assert_uint_eq(count_on(1, OTHER), 3 * GLOBAL_HEAP_CACHE_MAX);
}

/* A superblock with two blocks, which its heap gave to the top, and CPU 5 took from there. */
static struct superblock *taken_from_the_top(void *blocks[2])
{
    act(1, 1);
    for (int i = 0; i < 2; i++) blocks[i] = hoard_malloc(4096);
    struct superblock *sb = superblock_of(blocks[0]);
    heap_give_all();
    act(5, 5);
    ck_assert_ptr_eq(global_heap_take(sb->class, 0), sb);
    return sb;
}

static void free_both(struct superblock *sb, void *blocks[2])
{
    for (unsigned i = 0; i < 2; i++) {
        hoard_free(blocks[i]);
        heap_deliver_all(); /* it may be in a batch */
        ck_assert_uint_eq(superblock_live(sb), 1 - i);
    }
}

/* A free from anywhere finds the superblock where it lies; the last one has it be empty there. */
TEST(frees_reach_what_lies_near, .times = PATHS)
{
    start(_i, TWO_CACHES);
    void *blocks[2];
    struct superblock *sb = taken_from_the_top(blocks);
    give_on(5, sb); /* to the second cache's */
    ck_assert_uint_eq(sb->role.heap, HEAP_CACHES + 1);
    act(0, 0);
    free_both(sb, blocks);
    ck_assert_ptr_eq(take_on(7, OTHER), sb);
}

/* Who gave it has moved to another cache's CPU since, and settled there. */
TEST(frees_reach_what_nobody_has_filed, .times = PATHS)
{
    start(_i, TWO_CACHES);
    void *blocks[2];
    struct superblock *sb = taken_from_the_top(blocks);
    global_heap_give(sb, HEAP_NONE);
    act(0, 0);
    global_heap_settle();
    free_both(sb, blocks);
}

enum { BATCH = 1500, BATCH_SIZE = 1000, TURNS = 3000 };

/* Each CPU in turn, by chance, allocates a batch and frees it. How often does a superblock come from a CPU of
 * another cache? */
struct moves {
    unsigned all, far;
    size_t held;
};

static struct moves run_batches(const char *options, uint64_t random)
{
    struct moves moves = {0, 0, 0};
    static void *batch[BATCH];
    static uint8_t last_on[1 << 16]; /* plus one, of each superblock by its address */
    start(0, options);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned on = random_below(&random, CPUS);
        act(on, on);
        for (unsigned i = 0; i < BATCH / 10; i++) {
            batch[i] = hoard_malloc(BATCH_SIZE);
            uint8_t *last = &last_on[(uintptr_t)batch[i] / SUPERBLOCK % sizeof last_on];
            if (*last != 0 && *last != on + 1) {
                moves.all++;
                moves.far += cache_of(*last - 1u) != cache_of(on);
            }
            *last = (uint8_t)(on + 1);
        }
        for (unsigned i = 0; i < BATCH / 10; i++) hoard_free(batch[i]);
        size_t now = held_bytes();
        moves.held = now > moves.held ? now : moves.held;
    }
    return moves;
}

struct job {
    struct moves (*runs)(const char *options, uint64_t random);
    const char *options;
    uint64_t seed;
    struct moves *result;
};

static void run_job(void *arg)
{
    struct job *job = arg;
    *job->result = job->runs(job->options, job->seed);
}

/* What a load does with one cache, and with two. */
static const struct moves *run_both(struct moves (*runs)(const char *options, uint64_t random),
                                    const char *one, const char *two)
{
    struct moves *moves =
        mmap(NULL, 2 * sizeof *moves, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = random_seed();
    assert_ends_well(run_job, (&(struct job){runs, one, seed, &moves[0]}));
    assert_ends_well(run_job, (&(struct job){runs, two, seed, &moves[1]}));
    ck_assert_uint_le(moves[1].held, moves[0].held + 2 * GLOBAL_HEAP_CACHE_MAX * SUPERBLOCK);
    return moves;
}

TEST(superblocks_stay_near)
{
    const struct moves *moves = run_both(run_batches, ONE_CACHE ",slack=0", TWO_CACHES ",slack=0");
    fprintf(stderr, "one level: %u of %u moves were far, %zu held; two: %u of %u, %zu held\n", moves[0].far,
            moves[0].all, moves[0].held, moves[1].far, moves[1].all, moves[1].held);
    ck_assert_uint_gt(moves[0].far, moves[0].all / 3); /* by chance it is 4 of 7 */
    ck_assert_uint_lt(moves[1].far, moves[1].all / 20);
}

/* A batch goes round all CPUs, each of which frees what the one before it allocated. With levels no more is
 * held than without, but for what the caches' heaps keep. */
static struct moves pass_round(const char *options, uint64_t unused)
{
    (void)unused;
    struct moves moves = {0, 0, 0};
    static void *batch[BATCH];
    start(0, options);
    for (unsigned turn = 0; turn < 40 * CPUS; turn++) {
        act(turn * 3 % CPUS, turn * 3 % CPUS);
        for (unsigned i = 0; i < BATCH; i++) hoard_free(batch[i]);
        for (unsigned i = 0; i < BATCH; i++) batch[i] = hoard_malloc(BATCH_SIZE);
        size_t now = held_bytes();
        moves.held = now > moves.held ? now : moves.held;
    }
    return moves;
}

TEST(levels_add_a_constant) { run_both(pass_round, ONE_CACHE, TWO_CACHES); }

int main(void) { return run_tests((struct suite){0}); }
