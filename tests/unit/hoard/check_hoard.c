/* SPDX-License-Identifier: Apache-2.0 */
/* check_hoard.c: the calls of hoard.h against a shadow model, by several threads that free each other's
 * blocks, on each path. Every block is filled with bytes of its own, checked when it is freed or resized. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "base/options.h"
#include "heap/heap.h"

enum { THREADS = 4, MINE = 300, SHARED = 64, STEPS = 60000, LARGEST = 9 * MIB, LARGE_AT_ONCE = 6 };

struct block {
    unsigned char *at; /* NULL: none */
    size_t size, usable;
    unsigned char fill;
};

struct player {
    uint64_t random;
    struct block blocks[MINE];
    unsigned large;    /* of its blocks, how many are above 256 KiB */
    const char *wrong; /* NULL: nothing so far */
};

static _Atomic(struct block *) shared[SHARED]; /* on their way from one thread to another */

/* --- one block ------------------------------------------------------------------------------- */

/* All of a small block, the ends and a sample of a large one. */
static size_t step_of(size_t size) { return size < 4096 ? 1 : size / 1000; }

static void fill(const struct block *block)
{
    for (size_t i = 0; i < block->size; i += step_of(block->size)) block->at[i] = block->fill;
    if (block->size != 0) block->at[block->size - 1] = block->fill;
}

static bool is_filled(const struct block *block, size_t size)
{
    for (size_t i = 0; i < size; i += step_of(block->size))
        if (block->at[i] != block->fill) return false;
    return block->size != size || size == 0 || block->at[size - 1] == block->fill;
}

static void complain(struct player *player, bool right, const char *what)
{
    if (!right && player->wrong == NULL) player->wrong = what;
}

static size_t random_size(struct player *player)
{
    static const unsigned limits[] = {16, 100, 100, 300, 300, 1024, 1100, 5000, CLASS_SIZE_MAX, SUPERBLOCK};
    unsigned which = random_below(&player->random, 400);
    if (which < 2 && player->large < LARGE_AT_ONCE) return random_below(&player->random, LARGEST);
    if (which < 20) return random_below(&player->random, 256 * KIB);
    return random_below(&player->random, limits[which % 10] + 1);
}

static void look(struct player *player, struct block *block, size_t alignment)
{
    complain(player, block->at != NULL, "no memory");
    if (block->at == NULL) return;
    complain(player, (uintptr_t)block->at % alignment == 0, "not aligned");
    block->usable = hoard_usable_size(block->at);
    complain(player, block->usable >= block->size, "usable size too small");
    block->fill = (unsigned char)(1 + random_below(&player->random, 255));
    if (block->size > 256 * KIB) player->large++;
    fill(block);
}

static bool is_zero(const unsigned char *at, size_t size)
{
    for (size_t i = 0; i < size; i += step_of(size))
        if (at[i] != 0) return false;
    return size == 0 || at[size - 1] == 0;
}

static void allocate(struct player *player, struct block *block)
{
    size_t size = block->size = random_size(player), alignment = 16;
    void *p = NULL;
    switch (random_below(&player->random, 6)) {
    case 0:
        block->at = hoard_calloc(size / 8 + 1, 8);
        complain(player, block->at == NULL || is_zero(block->at, (size / 8 + 1) * 8), "calloc is not zero");
        break;
    case 1:
        alignment = (size_t)1 << random_below(&player->random, 17);
        block->at = hoard_aligned_alloc(alignment, size);
        break;
    case 2:
        alignment = (size_t)8 << random_below(&player->random, 10);
        complain(player, hoard_posix_memalign(&p, alignment, size) == 0, "posix_memalign failed");
        block->at = p;
        break;
    case 3: block->at = hoard_realloc(NULL, size); break;
    default: block->at = hoard_malloc(size); break;
    }
    look(player, block, alignment > 16 ? alignment : 16);
}

static void check_contents(struct player *player, const struct block *block, size_t size)
{
    complain(player, is_filled(block, size), "contents changed");
    complain(player, hoard_usable_size(block->at) == block->usable, "usable size changed");
}

static void release(struct player *player, struct block *block)
{
    check_contents(player, block, block->size);
    if (block->size > 256 * KIB && player->large > 0) player->large--;
    errno = 4242;
    hoard_free(block->at);
    complain(player, errno == 4242, "free changed errno");
    block->at = NULL;
}

static void resize(struct player *player, struct block *block)
{
    check_contents(player, block, block->size);
    size_t old = block->size, size = random_size(player);
    if (old > 256 * KIB && player->large > 0) player->large--;
    unsigned char *moved = hoard_realloc(block->at, size);
    complain(player, moved != NULL, "realloc failed");
    if (moved == NULL) return;
    block->at = moved;
    size_t kept = old < size ? old : size;
    block->size = old; /* was filled so */
    complain(player, is_filled(block, kept != old ? kept : old), "realloc lost contents");
    block->size = size;
    look(player, block, 16);
}

/* Leaves a block for whoever comes, and takes what was left there. */
static void exchange(struct player *player, struct block *block)
{
    struct block *mine = hoard_malloc(sizeof *mine);
    *mine = *block;
    struct block *other = atomic_exchange(&shared[random_below(&player->random, SHARED)], mine);
    block->at = NULL;
    if (other == NULL) return;
    *block = *other;
    hoard_free(other);
    check_contents(player, block, block->size);
}

static void play_one(struct player *player)
{
    struct block *block = &player->blocks[random_below(&player->random, MINE)];
    unsigned what = random_below(&player->random, 10);
    if (block->at == NULL)
        allocate(player, block);
    else if (what < 5)
        release(player, block);
    else if (what < 7)
        resize(player, block);
    else
        exchange(player, block);
}

static void *play(void *arg)
{
    struct player *player = arg;
    unsigned steps = steps_of(STEPS);
    for (unsigned step = 0; step < steps && player->wrong == NULL; step++) play_one(player);
    for (unsigned i = 0; i < MINE; i++)
        if (player->blocks[i].at != NULL) release(player, &player->blocks[i]);
    return NULL;
}

static void release_shared(struct player *player)
{
    for (unsigned i = 0; i < SHARED; i++) {
        struct block *left = atomic_exchange(&shared[i], NULL);
        if (left == NULL) continue;
        release(player, left);
        hoard_free(left);
    }
}

/* The paths and policies, and what else decides who meets whom where. */
static const struct {
    int way;
    const char *more;
} settings[] = {{0, "purge_ms=5"}, {1, "purge_ms=0"}, {2, "purge_ms=5"}, {0, "slack=0,empty_fraction=1"},
                {1, "lock=block"}, {2, "lock=spin"},  {3, "purge_ms=0"}, {4, "lock=block"},
                {5, "slack=0"},    {6, "lock=both"},  {7, "lock=spin"},  {8, "slack=0"},
                {9, "slack=1"}};

enum { SETTINGS = sizeof settings / sizeof settings[0] };

TEST(blocks_agree_with_a_model, .times = SETTINGS)
{
    use_path(settings[_i].way, settings[_i].more);
    static struct player players[THREADS];
    pthread_t threads[THREADS];
    uint64_t seed = random_seed();
    for (unsigned i = 0; i < THREADS; i++) {
        players[i].random = seed + i * 7919 + 1;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(players[i].wrong == NULL, "thread %u: %s", i, players[i].wrong);
    }
    release_shared(&players[0]);
    ck_assert_msg(players[0].wrong == NULL, "%s", players[0].wrong);
    ck_assert_uint_eq(stats_now().large_bytes, 0);
    assert_all_comes_back();
}

/* --- the edges of each call ------------------------------------------------------------------ */

TEST(impossible_sizes_are_enomem, .times = PATHS)
{
    use_path(_i, NULL);
    static const size_t much[] = {SIZE_MAX,     SIZE_MAX - 1,     SIZE_MAX - 4095,
                                  SIZE_MAX / 2, SIZE_MAX / 2 + 2, (size_t)1 << PAGEMAP_ADDRESS_BITS};
    void *block = hoard_malloc(10);
    for (size_t i = 0; i < sizeof much / sizeof much[0]; i++) {
        void *p = block;
        errno = 0;
        ck_assert_ptr_null(hoard_malloc(much[i]));
        ck_assert_int_eq(errno, ENOMEM);
        errno = 0;
        ck_assert_ptr_null(hoard_calloc(much[i], 1));
        ck_assert_int_eq(errno, ENOMEM);
        errno = 0;
        ck_assert_ptr_null(hoard_calloc(much[i], 16));
        ck_assert_int_eq(errno, ENOMEM);
        errno = 0;
        ck_assert_ptr_null(hoard_realloc(block, much[i]));
        ck_assert_int_eq(errno, ENOMEM);
        errno = 0;
        ck_assert_ptr_null(hoard_aligned_alloc(64, much[i]));
        ck_assert_int_eq(errno, ENOMEM);
        errno = 0;
        ck_assert_int_eq(hoard_posix_memalign(&p, 64, much[i]), ENOMEM);
        ck_assert_int_eq(errno, 0);
        ck_assert_ptr_eq(p, block);
    }
    hoard_free(block);
}

TEST(alignments, .times = PATHS)
{
    volatile size_t no_powers[] = {0, 48}; /* a compiler warns of constants, and clang 14 may break down */
    use_path(_i, NULL);
    errno = 0;
    ck_assert_ptr_null(hoard_aligned_alloc(no_powers[0], 10));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(hoard_aligned_alloc(no_powers[1], 10));
    void *p;
    ck_assert_int_eq(hoard_posix_memalign(&p, 4, 10), EINVAL);
    ck_assert_int_eq(hoard_posix_memalign(&p, 0, 10), EINVAL);
    ck_assert_int_eq(hoard_posix_memalign(&p, 24, 10), EINVAL);
    for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2)
        for (size_t size = 0; size < 3 * alignment && size < 12 * MIB; size = size * 3 + 1) {
            char *block = hoard_aligned_alloc(alignment, size);
            ck_assert_ptr_nonnull(block);
            ck_assert_uint_eq((uintptr_t)block % alignment, 0);
            ck_assert_uint_ge(hoard_usable_size(block), size);
            if (size != 0) block[0] = block[size - 1] = 1;
            hoard_free(block);
        }
}

TEST(nothing_is_something, .times = PATHS)
{
    use_path(_i, NULL);
    hoard_free(NULL);
    ck_assert_uint_eq(hoard_usable_size(NULL), 0);
    void *a = hoard_malloc(0), *b = hoard_malloc(0), *c = hoard_calloc(0, 8), *d = hoard_realloc(NULL, 0);
    ck_assert_ptr_nonnull(a);
    ck_assert(a != b && b != c && c != d && a != c);
    ck_assert_ptr_nonnull(a = hoard_realloc(a, 0)); /* leaves a block of size 0 */
    a = hoard_realloc(a, 1000);
    ck_assert_ptr_nonnull(a = hoard_realloc(a, 0));
    ck_assert_uint_lt(hoard_usable_size(a), 1000);
    errno = 0;
    ck_assert_int_eq(hoard_stats(NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
}

TEST(stats_tell_what_there_is, .times = PATHS)
{
    static const char *const names[PATHS] = {"rseq cid", "rseq cpu", "locked"};
    use_path(_i, NULL);
    struct hoard_stats before, after;
    hoard_stats(&before);
    void *small = hoard_malloc(100), *large = hoard_malloc(200000), *huge = hoard_malloc(5 * MIB);
    hoard_stats(&after);
    size_t sizes = hoard_usable_size(large) + hoard_usable_size(huge);
    ck_assert_uint_eq(after.large_bytes - before.large_bytes, sizes);
    ck_assert_uint_eq(after.live_bytes - before.live_bytes, sizes + hoard_usable_size(small));
    ck_assert_uint_ge(after.held_bytes, after.live_bytes);
    ck_assert_uint_ge(after.peak_held_bytes, after.held_bytes);
    ck_assert_uint_eq(after.heaps, 1);
    ck_assert_uint_eq(after.superblocks, 1);
    ck_assert_uint_eq(after.slow_mallocs, 1);
    if (strcmp(after.path, "locked") != 0) ck_assert_str_eq(after.path, names[_i]);
    hoard_free(small);
    hoard_free(large);
    hoard_free(huge);
    hoard_stats(&after);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
}

struct classes {
    unsigned count, stop_at;
    size_t bytes, superblocks, size;
    int has_chunks;
};

static int add_class(const struct hoard_class *sizes, void *arg)
{
    struct classes *classes = arg;
    ck_assert(classes->count == 0 || sizes->has_chunks != classes->has_chunks || sizes->size > classes->size);
    ck_assert(sizes->has_chunks >= classes->has_chunks);
    ck_assert(sizes->used <= sizes->blocks && sizes->empty <= sizes->superblocks && sizes->superblocks > 0);
    classes->bytes += sizes->size * sizes->used;
    classes->superblocks += sizes->superblocks;
    classes->size = sizes->size;
    classes->has_chunks = sizes->has_chunks;
    return ++classes->count == classes->stop_at ? 42 : 0;
}

TEST(classes_add_up, .times = PATHS)
{
    use_path(_i, NULL);
    struct hoard_stats stats;
    struct classes classes = {.count = 0};
    for (size_t i = 0; i < 3000; i++) hoard_malloc(i * 10);
    hoard_stats(&stats);
    ck_assert_int_eq(hoard_walk_classes(add_class, &classes), 0);
    ck_assert_uint_gt(classes.count, 10);
    ck_assert_uint_eq(classes.bytes + stats.large_bytes, stats.live_bytes);
    ck_assert_uint_eq(classes.superblocks, stats.superblocks + stats.global_superblocks);
    classes = (struct classes){.stop_at = 3};
    ck_assert_int_eq(hoard_walk_classes(add_class, &classes), 42);
    ck_assert_uint_eq(classes.count, 3);
    ck_assert_uint_gt(strlen(hoard_path_reason()), 0);
    size_t returned = hoard_returned_bytes();
    hoard_free(hoard_malloc(40 * MIB));
    hoard_trim(0);
    ck_assert_uint_ge(hoard_returned_bytes(), returned + 40 * MIB);
}

static unsigned called;

static void call(void)
{
    called++;
    hoard_free(hoard_malloc(300000)); /* and again it leaves the fast path */
    errno = EINTR;
}

TEST(a_function_is_called_later, .times = PATHS)
{
    use_path(_i, NULL);
    hoard_free(hoard_malloc(100));
    hoard_call_later(call);
    ck_assert_uint_eq(called, 0);
    errno = 0;
    hoard_free(hoard_malloc(200000));
    ck_assert_uint_eq(called, 1);
    ck_assert_int_eq(errno, 0);
    hoard_free(hoard_malloc(5 * MIB));
    ck_assert_uint_eq(called, 1);
    hoard_call_later(call);
    hoard_call_later(NULL);
    hoard_free(hoard_malloc(5 * MIB));
    ck_assert_uint_eq(called, 1);
    hoard_call_later(call);
    pid_t pid = fork();
    if (pid == 0) {
        hoard_free(hoard_malloc(5 * MIB));
        _exit(called != 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    hoard_free(hoard_malloc(5 * MIB));
    ck_assert_uint_eq(called, 2);
}

int main(void) { return run_tests((struct suite){.seconds = 100}); }
