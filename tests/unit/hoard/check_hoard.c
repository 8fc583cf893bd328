/* SPDX-License-Identifier: Apache-2.0 */
/* check_hoard.c: the edges of hoard.h's calls. (tests/fuzz has a model of them, by several threads that free
 * each other's blocks.) */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "base/options.h"
#include "heap/heap.h"

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

int main(void) { return run_tests((struct suite){0}); }
