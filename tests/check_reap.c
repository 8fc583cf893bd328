/* check_reap.c: each call of reap.h, and the examples of the thesis. */
#include "check_reap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reap_chunk.h"

static void *reap;

static void setup(void)
{
    reapCreate(&reap, NULL);
    ck_assert_ptr_nonnull(reap);
}

static void teardown(void)
{
    assert_valid(reap);
    reapDestroy(&reap);
    ck_assert_ptr_null(reap);
}

/* Hides a size from the compiler, which would warn of it. */
static size_t opaque(size_t size)
{
    volatile size_t hidden = size;
    return hidden;
}

static struct reap_stats stats(void)
{
    struct reap_stats stats;
    ck_assert_int_eq(reapStats(&reap, &stats), 0);
    return stats;
}

/* --- the thesis ------------------------------------------------------------------------------ */

/* Figure 6.1: four objects side by side; the third is freed, and its place is used again. */
START_TEST(figure_6_1)
{
    char *x1 = reapMalloc(&reap, 8);
    char *x2 = reapMalloc(&reap, 8);
    char *x3 = reapMalloc(&reap, 16);
    char *x4 = reapMalloc(&reap, 8);
    ck_assert_ptr_eq(x2, x1 + 16);
    ck_assert_ptr_eq(x3, x2 + 16);
    ck_assert_ptr_eq(x4, x3 + 16);
    reapFree(&reap, x3);
    ck_assert_ptr_eq(reapMalloc(&reap, 16), x3); /* heap mode, until this is exhausted */
    ck_assert_ptr_eq(reapMalloc(&reap, 16), x4 + 16);
}
END_TEST

/* Figure 6.2: regions with nesting on one side, single frees on the other, reaps both. */
START_TEST(figure_6_2)
{
    void *child, *grandchild;
    reapCreate(&child, &reap);
    reapCreate(&grandchild, &child);
    void *object = reapMalloc(&grandchild, 100), *owner;
    reapFree(&grandchild, object);
    object = reapMalloc(&grandchild, 100);
    ck_assert_int_eq(reapOf(object, &owner), 0);
    ck_assert_ptr_eq(owner, grandchild);
    reapFreeAll(&child);
    ck_assert_uint_eq(stats().children, 1);
    ck_assert_ptr_eq(reapParent(&child), reap);
    ck_assert_ptr_nonnull(reapMalloc(&child, 100));
    reapDestroy(&child);
    ck_assert_uint_eq(stats().children, 0);
}
END_TEST

/* --- allocation ------------------------------------------------------------------------------ */

START_TEST(objects_are_aligned_and_apart)
{
    char *last = NULL;
    for (size_t size = 0; size < 3000; size++) {
        char *object = reapMalloc(&reap, size);
        ck_assert_uint_eq((uintptr_t)object % 16, 0);
        ck_assert_uint_eq(reapUsableSize(object), size ? (size + 15) / 16 * 16 : 16);
        ck_assert_ptr_ne(object, last);
        memset(object, 1, size);
        last = object;
    }
}
END_TEST

START_TEST(no_size_is_too_big_to_refuse)
{
    static const size_t sizes[] = {SIZE_MAX,
                                   SIZE_MAX - 1,
                                   SIZE_MAX - 15,
                                   SIZE_MAX - 16,
                                   SIZE_MAX / 2 + 1,
                                   PTRDIFF_MAX,
                                   (size_t)PTRDIFF_MAX - 4096,
                                   (size_t)1 << 62};
    struct reap_stats before = stats(), after;
    void *object = reapMalloc(&reap, 10);
    reapFree(&reap, object);
    for (int round = 0; round < 2; round++) { /* as a region, and as a heap */
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            errno = 0;
            ck_assert_ptr_null(reapMalloc(&reap, sizes[i]));
            ck_assert_int_eq(errno, ENOMEM);
            ck_assert_ptr_null(reapCalloc(&reap, 1, sizes[i]));
            ck_assert_ptr_null(reapCalloc(&reap, sizes[i], 3));
            ck_assert_ptr_null(reapAlignedAlloc(&reap, 4096, sizes[i]));
            ck_assert_ptr_null(reapMemdup(&reap, &before, sizes[i]));
        }
        object = reapMalloc(&reap, 10);
        void *behind = reapMalloc(&reap, 10);
        ck_assert_ptr_null(reapRealloc(&reap, object, opaque(SIZE_MAX)));
        ck_assert_uint_eq(reapUsableSize(object), 16);
        reapFree(&reap, object);
        reapFree(&reap, behind);
    }
    after = stats();
    ck_assert_uint_eq(after.chunk_bytes, before.chunk_bytes);
    ck_assert_uint_eq(after.live_objects, 0);
}
END_TEST

START_TEST(calloc_zeroes_used_memory)
{
    for (size_t size = 1; size < 200000; size = size * 3 + 1) {
        unsigned char *object = reapMalloc(&reap, size);
        memset(object, 0xff, size);
        reapFree(&reap, object);
        object = reapCalloc(&reap, size, 1);
        for (size_t i = 0; i < size; i++) ck_assert_uint_eq(object[i], 0);
    }
    ck_assert_ptr_nonnull(reapCalloc(&reap, 0, 8));
    errno = 0;
    ck_assert_ptr_null(reapCalloc(&reap, opaque(SIZE_MAX / 2), 3));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(aligned_objects)
{
    for (size_t alignment = 1; alignment <= (size_t)1 << 21; alignment *= 2) {
        for (size_t size = 0; size < 100000; size = size * 5 + 7) {
            char *object = reapAlignedAlloc(&reap, alignment, size);
            ck_assert_uint_eq((uintptr_t)object % alignment, 0);
            ck_assert_uint_ge(reapUsableSize(object), size);
            memset(object, 2, size);
            if (size % 3) reapFree(&reap, object);
        }
        assert_valid(reap);
    }
    static const size_t bad[] = {0, 3, 24, SIZE_MAX};
    for (size_t i = 0; i < 4; i++) {
        errno = 0;
        ck_assert_ptr_null(reapAlignedAlloc(&reap, bad[i], 10));
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_ptr_null(reapAlignedAlloc(&reap, (size_t)1 << 63, 10));
}
END_TEST

START_TEST(realloc_grows_in_place)
{
    char *object = reapRealloc(&reap, NULL, 10);
    strcpy(object, "123456789");
    ck_assert_ptr_eq(reapRealloc(&reap, object, 1000), object); /* at the bump pointer */
    char *behind = reapMalloc(&reap, 100), *last = reapMalloc(&reap, 10);
    reapFree(&reap, behind);
    ck_assert_ptr_eq(reapRealloc(&reap, object, 1050), object); /* into a free block */
    ck_assert_uint_eq(reapUsableSize(object), 1056);
    char *moved = reapRealloc(&reap, object, 2000);
    ck_assert_ptr_ne(moved, object);
    ck_assert_str_eq(moved, "123456789");
    ck_assert_uint_eq(reapUsableSize(last), 16);
    ck_assert_uint_eq(stats().live_objects, 2);
}
END_TEST

START_TEST(realloc_shrinks_in_place)
{
    char *object = reapMalloc(&reap, 1000), *behind = reapMalloc(&reap, 10);
    ck_assert_ptr_eq(reapRealloc(&reap, object, 100), object);
    ck_assert_uint_eq(reapUsableSize(object), 112);
    ck_assert_uint_eq(stats().live_bytes, 128);
    ck_assert_ptr_eq(reapRealloc(&reap, object, 0), object);
    ck_assert_uint_eq(reapUsableSize(object), 16);
    ck_assert_ptr_eq(reapRealloc(&reap, behind, 0), behind);
    ck_assert_uint_eq(stats().live_objects, 2);
}
END_TEST

START_TEST(large_objects_have_chunks_of_their_own)
{
    size_t before = stats().chunk_bytes;
    char *object = reapMalloc(&reap, 1000000);
    ck_assert_uint_eq(stats().chunks, 2);
    ck_assert_uint_eq(stats().live_bytes, 1000000);
    ck_assert_uint_eq(reapUsableSize(object), 1000000);
    object[0] = 'a';
    object[999999] = 'z';
    object = reapRealloc(&reap, object, 5000000);
    ck_assert_int_eq(object[0], 'a');
    ck_assert_int_eq(object[999999], 'z');
    object = reapRealloc(&reap, object, 40000);
    ck_assert_uint_lt(stats().chunk_bytes, 200000);
    object = reapRealloc(&reap, object, 100);
    ck_assert_int_eq(object[0], 'a');
    ck_assert_uint_eq(stats().chunk_bytes, before);
    reapFree(&reap, object);
    ck_assert_uint_eq(stats().peak_chunk_bytes >= 5000000, 1);
}
END_TEST

/* --- freeing --------------------------------------------------------------------------------- */

START_TEST(freed_neighbours_join)
{
    enum { N = 60 };
    char *objects[N];
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 64);
    for (int i = 0; i < N - 1; i += 2) reapFree(&reap, objects[i]);
    for (int i = 1; i < N - 1; i += 2) reapFree(&reap, objects[i]);
    ck_assert_ptr_eq(reapMalloc(&reap, 64 * (N - 1)), objects[0]);
    ck_assert_uint_eq(stats().chunks, 1);
    ck_assert_uint_eq(stats().live_objects, 2);
}
END_TEST

START_TEST(the_last_object_gives_its_memory_back_to_the_bump_pointer)
{
    char *first = reapMalloc(&reap, 100);
    reapFree(&reap, first);
    char *second = reapMalloc(&reap, 200);
    ck_assert_ptr_eq(second, first);
    char *third = reapMalloc(&reap, 100);
    reapFree(&reap, second);
    reapFree(&reap, third);
    ck_assert_ptr_eq(reapMalloc(&reap, 300), first);
}
END_TEST

/* Freed memory is used before the reap grows, whatever the order of the frees. */
START_TEST(freed_memory_is_used_again)
{
    enum { N = 5000 };
    static void *objects[N];
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 100);
    size_t held = stats().chunk_bytes;
    for (int round = 0; round < 20; round++) {
        for (int i = round % 3; i < N; i += 3) reapFree(&reap, objects[i]);
        for (int i = round % 3; i < N; i += 3) objects[i] = reapMalloc(&reap, 50 + (size_t)(i + round) % 51);
        assert_valid(reap);
    }
    ck_assert_uint_eq(stats().chunk_bytes, held);
    ck_assert_uint_eq(stats().live_objects, N);
}
END_TEST

/* A long-lived reap shrinks: each chunk goes when nothing in it lives. */
START_TEST(empty_chunks_go_back)
{
    enum { N = 100000 };
    static void *objects[N];
    size_t before = stats().chunk_bytes;
    for (int order = 0; order < 3; order++) {
        for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 48);
        ck_assert_uint_gt(stats().chunk_bytes, N * 48);
        for (int i = 0; i < N; i++) {
            int at = order == 0 ? i : order == 1 ? N - 1 - i : (int)((long)i * 7919 % N);
            reapFree(&reap, objects[at]);
            if (i == N * 9 / 10 && order < 2) ck_assert_uint_lt(stats().chunk_bytes, N * 48 / 2);
        }
        assert_valid(reap);
        ck_assert_uint_eq(stats().chunk_bytes, before);
        ck_assert_uint_eq(stats().live_bytes, 0);
    }
}
END_TEST

/* One object that comes and goes where a chunk begins must not cost a chunk each time. */
START_TEST(a_border_between_chunks_does_not_thrash)
{
    while (stats().chunks == 1) reapMalloc(&reap, 64);
    for (int i = 0; i < 100; i++) reapMalloc(&reap, 64);
    struct reap_stats full = stats();
    while (stats().chunks == full.chunks) reapMalloc(&reap, 64);
    size_t held = stats().chunk_bytes;
    for (int i = 0; i < 100; i++) {
        void *object = reapMalloc(&reap, 1000);
        ck_assert_uint_eq(stats().chunk_bytes, held);
        reapFree(&reap, object);
    }
}
END_TEST

/* --- strings --------------------------------------------------------------------------------- */

START_TEST(strings)
{
    char long_text[1000];
    memset(long_text, 'x', 999);
    long_text[999] = '\0';
    ck_assert_str_eq(reapStrdup(&reap, ""), "");
    ck_assert_str_eq(reapStrdup(&reap, "text"), "text");
    ck_assert_str_eq(reapStrndup(&reap, "text", 2), "te");
    ck_assert_str_eq(reapStrndup(&reap, "text", SIZE_MAX), "text");
    ck_assert_int_eq(memcmp(reapMemdup(&reap, "a\0b", 4), "a\0b", 4), 0);
    ck_assert_ptr_nonnull(reapMemdup(&reap, NULL, 0));
    ck_assert_str_eq(reapPrintf(&reap, "%d %s", 42, "text"), "42 text");
    ck_assert_str_eq(reapPrintf(&reap, "%s", long_text), long_text);
    ck_assert_uint_eq(reapUsableSize(reapPrintf(&reap, "%255s", "")), 256);
    ck_assert_uint_eq(reapUsableSize(reapPrintf(&reap, "%256s", "")), 272);
}
END_TEST

/* --- who and what ---------------------------------------------------------------------------- */

START_TEST(every_pointer_knows_its_owner)
{
    void *other, *owner = &owner;
    int local;
    reapCreate(&other, NULL);
    char *here = reapMalloc(&reap, 100), *there = reapMalloc(&other, 100000);
    ck_assert_int_eq(reapOf(here + 99, &owner), 0);
    ck_assert_ptr_eq(owner, reap);
    ck_assert_int_eq(reapOf(there + 99999, &owner), 0);
    ck_assert_ptr_eq(owner, other);
    reapFree(&reap, here);
    const void *outside[] = {NULL,
                             &local,
                             &reap,
                             here,
                             here + 16,
                             reap,
                             (void *)1,
                             (void *)UINTPTR_MAX,
                             (void *)0xffff800000000000,
                             there - 16,
                             there + 100000};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        errno = 0;
        ck_assert_int_eq(reapOf(outside[i], &owner), -1);
        ck_assert_int_eq(errno, ENOENT);
        ck_assert_ptr_null(owner);
    }
    reapDestroy(&other);
    ck_assert_int_eq(reapOf(there, &owner), -1);
}
END_TEST

START_TEST(names)
{
    char name[5000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert_ptr_null(reapName(&reap));
    ck_assert_int_eq(reapSetName(&reap, "first"), 0);
    ck_assert_str_eq(reapName(&reap), "first");
    ck_assert_int_eq(reapSetName(&reap, reapName(&reap) + 1), 0); /* overlapping */
    ck_assert_str_eq(reapName(&reap), "irst");
    ck_assert_int_eq(reapSetName(&reap, name), -1);
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert_str_eq(reapName(&reap), "irst");
    ck_assert_int_eq(reapSetName(&reap, name + 1000), 0);
    for (int i = 0; i < 1000; i++) reapMalloc(&reap, 100);
    ck_assert_int_eq(reapSetName(&reap, name + 905), 0); /* in another chunk */
    reapFreeAll(&reap);
    ck_assert_str_eq(reapName(&reap), name + 905);
    ck_assert_uint_eq(stats().live_objects, 0);
    ck_assert_int_eq(reapSetName(&reap, NULL), 0);
    ck_assert_ptr_null(reapName(&reap));
}
END_TEST

START_TEST(usable_size_of_null) { ck_assert_uint_eq(reapUsableSize(NULL), 0); }
END_TEST

START_TEST(the_version_is_the_headers)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", REAP_VERSION_MAJOR, REAP_VERSION_MINOR, REAP_VERSION_PATCH);
    ck_assert_str_eq(reapVersion(), version);
    ck_assert_str_eq(reapVersion(), REAP_VERSION);
}
END_TEST

/* --- clearing and destroying ----------------------------------------------------------------- */

static char order[100];

static void note(void *arg) { strcat(order, arg); }

static void nothing(void *arg) { (void)arg; }

START_TEST(functions_run_last_in_first_out_after_the_children)
{
    void *a, *b, *below_b;
    order[0] = '\0';
    reapOnDestroy(&reap, note, (void *)"1");
    reapCreate(&a, &reap);
    reapOnDestroy(&a, note, (void *)"a");
    reapCreate(&b, &reap);
    reapOnDestroy(&b, note, (void *)"b");
    reapCreate(&below_b, &b);
    reapOnDestroy(&below_b, note, (void *)"c");
    reapOnDestroy(&reap, note, (void *)"2");
    reapOnDestroy(&reap, note, (void *)"3");
    ck_assert_int_eq(reapCancelOnDestroy(&reap, note, (void *)"2"), 0);
    ck_assert_int_eq(reapCancelOnDestroy(&reap, note, (void *)"2"), -1);
    ck_assert_int_eq(errno, ENOENT);
    reapFreeAll(&reap);
    ck_assert_str_eq(order, "cba31");
    reapFreeAll(&reap);
    ck_assert_str_eq(order, "cba31");
    reapOnDestroy(&reap, note, (void *)"4");
    void *handle = reap;
    reapDestroy(&handle);
    ck_assert_str_eq(order, "cba314");
    reapCreate(&reap, NULL);
}
END_TEST

static void register_more(void *arg)
{
    note(arg);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 50000));
    reapOnDestroy(&reap, note, (void *)"y");
    ck_assert_int_eq(reapCancelOnDestroy(&reap, note, (void *)"x"), 0);
    void *child;
    reapCreate(&child, &reap);
    reapOnDestroy(&child, note, (void *)"z");
}

START_TEST(functions_may_use_the_reap)
{
    order[0] = '\0';
    reapOnDestroy(&reap, note, (void *)"0");
    reapOnDestroy(&reap, note, (void *)"x");
    reapOnDestroy(&reap, register_more, (void *)"1");
    reapFreeAll(&reap);
    ck_assert_str_eq(order, "1zy0");
    ck_assert_uint_eq(stats().children, 0);
    ck_assert_uint_eq(stats().live_objects, 0);
}
END_TEST

/* Records are not objects, and those taken back are used again. */
START_TEST(functions_cost_no_objects)
{
    for (int i = 0; i < 10000; i++) {
        ck_assert_int_eq(reapOnDestroy(&reap, note, (void *)"x"), 0);
        ck_assert_int_eq(reapCancelOnDestroy(&reap, note, (void *)"x"), 0);
    }
    ck_assert_uint_eq(stats().live_objects, 0);
    ck_assert_uint_eq(stats().chunks, 1);
    order[0] = '\0';
    for (int i = 0; i < 1000; i++) reapOnDestroy(&reap, nothing, NULL);
    reapFreeAll(&reap);
}
END_TEST

START_TEST(a_deep_tree_needs_no_stack)
{
    enum { DEPTH = 20000 };
    void *parent = reap, *child = NULL;
    for (int i = 0; i < DEPTH; i++) {
        reapCreate(&child, &parent);
        ck_assert_ptr_nonnull(child);
        parent = child;
    }
    reapFreeAll(&reap);
    ck_assert_uint_eq(stats().children, 0);
}
END_TEST

/* What a clear keeps follows what is used, and forgets a burst. */
START_TEST(a_clear_keeps_what_the_next_round_needs)
{
    size_t first = stats().chunk_bytes;
    for (int i = 0; i < 1000; i++) reapMalloc(&reap, 200);
    size_t full = stats().chunk_bytes;
    reapFreeAll(&reap);
    ck_assert_uint_eq(stats().live_bytes, 0);
    ck_assert_uint_eq(stats().chunk_bytes, full);
    for (int i = 0; i < 1000; i++) reapMalloc(&reap, 200);
    ck_assert_uint_eq(stats().chunk_bytes, full);
    for (int i = 0; i < 100000; i++) reapMalloc(&reap, 200);
    reapFreeAll(&reap);
    ck_assert_uint_le(stats().chunk_bytes, 2 * REAP_KEEP_MAX + first);
    for (int i = 0; i < 120; i++) reapFreeAll(&reap);
    ck_assert_uint_eq(stats().chunk_bytes, first);
}
END_TEST

START_TEST(destroying_nothing)
{
    void *nothing = NULL;
    reapDestroy(&nothing);
    ck_assert_ptr_null(nothing);
    reapFree(&reap, NULL);
    reapCreate(&nothing, &(void *){NULL});
    ck_assert_ptr_null(reapParent(&nothing));
    reapDestroy(&nothing);
}
END_TEST

/* --- looking --------------------------------------------------------------------------------- */

static int free_odd(void *object, size_t size, void *arg)
{
    int *seen = arg;
    ck_assert_uint_eq(size % 16, 0);
    if (++*seen % 2) reapFree(&reap, object);
    return 0;
}

static int stop_at_third(void *object, size_t size, void *arg)
{
    (void)object;
    (void)size;
    return ++*(int *)arg == 3 ? 42 : 0;
}

static int free_each(void *object, size_t size, void *arg)
{
    (void)size;
    ++*(int *)arg;
    reapFree(&reap, object);
    return 0;
}

START_TEST(a_walk_sees_each_object_once)
{
    int seen = 0;
    for (int i = 0; i < 1000; i++) reapMalloc(&reap, (size_t)i * 3);
    reapMalloc(&reap, 100000);
    ck_assert_int_eq(reapWalk(&reap, free_odd, &seen), 0);
    ck_assert_int_eq(seen, 1001);
    ck_assert_uint_eq(stats().live_objects, 500);
    seen = 0;
    ck_assert_int_eq(reapWalk(&reap, stop_at_third, &seen), 42);
    ck_assert_int_eq(seen, 3);
    seen = 0;
    ck_assert_int_eq(reapWalk(&reap, free_each, &seen), 0);
    ck_assert_int_eq(seen, 500);
    ck_assert_uint_eq(stats().live_objects, 0);
    ck_assert_uint_eq(stats().chunks, 1);
    ck_assert_int_eq(reapWalk(&reap, free_each, &seen), 0);
    ck_assert_int_eq(seen, 500);
}
END_TEST

START_TEST(stats_add_up)
{
    ck_assert_uint_eq(stats().chunks, 1);
    ck_assert_uint_eq(stats().chunk_bytes, 8192);
    ck_assert_uint_eq(stats().limit, 0);
    void *small = reapMalloc(&reap, 1), *large = reapMalloc(&reap, 70001);
    reapMalloc(&reap, 0);
    ck_assert_uint_eq(stats().live_bytes, 16 + 70016 + 16);
    ck_assert_uint_eq(stats().live_objects, 3);
    size_t held = stats().chunk_bytes;
    reapFree(&reap, large);
    reapFree(&reap, small);
    ck_assert_uint_eq(stats().live_bytes, 16);
    ck_assert_uint_eq(stats().chunk_bytes, 8192);
    ck_assert_uint_eq(stats().peak_chunk_bytes, held);
}
END_TEST

START_TEST(the_report_is_a_tree)
{
    char *text = NULL;
    size_t size;
    void *child, *grandchild;
    reapSetName(&reap, "connection");
    reapCreate(&child, &reap);
    reapSetName(&child, "request");
    reapMalloc(&child, 100);
    reapCreate(&grandchild, &child);
    FILE *out = open_memstream(&text, &size);
    reapReport(&reap, out);
    fflush(out);
    ck_assert_int_eq(strncmp(text, "connection ", 11), 0);
    ck_assert_ptr_nonnull(strstr(text, "\n  request "));
    ck_assert_ptr_nonnull(strstr(text, ": 1 objects, 112 bytes, 1 chunks, 8192 held"));
    ck_assert_ptr_nonnull(strstr(text, "\n    0x"));
    fclose(out);
    size_t one = strlen(text);
    free(text);
    void *roots[200];
    for (int i = 0; i < 200; i++) reapCreate(&roots[i], NULL);
    out = open_memstream(&text, &size);
    reapReport(NULL, out);
    fclose(out);
    ck_assert_uint_gt(strlen(text), one + (size_t)200 * 50);
    ck_assert_ptr_nonnull(strstr(text, "connection "));
    for (int i = 0; i < 200; i++) reapDestroy(&roots[i]);
    free(text);
}
END_TEST

/* --- the equations --------------------------------------------------------------------------- */

#define BREAKS(statement, back)                                                                              \
    do {                                                                                                     \
        const char *why = NULL;                                                                              \
        statement;                                                                                           \
        ck_assert_msg(!reap_is_valid(reap, &why), "not noticed: %s", #statement);                            \
        ck_assert_ptr_nonnull(why);                                                                          \
        back;                                                                                                \
        assert_valid(reap);                                                                                  \
    } while (0)

START_TEST(validity_notices_each_broken_equation)
{
    struct reap *r = reap;
    struct reap_chunk *first = reap_first_chunk(r);
    void *objects[40], *child;
    reapCreate(&child, &reap);
    for (int i = 0; i < 40; i++) objects[i] = reapMalloc(&reap, 40);
    for (int i = 0; i < 30; i += 3) reapFree(&reap, objects[i]);
    reapMalloc(&reap, 100000);
    size_t free_unit = reap_unit(first, objects[3]), live_unit = reap_unit(first, objects[4]);
    struct reap_block *block = objects[27];
    assert_valid(reap);
    BREAKS(r->tag++, r->tag--);
    BREAKS(r->held++, r->held--);
    BREAKS(r->spare_bytes++, r->spare_bytes--);
    BREAKS(r->end -= 16, r->end += 16);
    BREAKS(r->bump += 16, r->bump -= 16);
    BREAKS(r->limit -= 16, r->limit += 16);
    BREAKS(r->bins_used |= 1, r->bins_used &= ~UINT64_C(1));
    BREAKS(r->bins_used &= ~UINT64_C(4), r->bins_used |= 4);
    BREAKS(block->next = NULL, block->next = objects[24]);
    BREAKS(block->chunk = NULL, block->chunk = first);
    BREAKS(((struct reap_block *)objects[24])->prev = NULL, ((struct reap_block *)objects[24])->prev = block);
    BREAKS(bitmap_clear(first->frees, free_unit), bitmap_set(first->frees, free_unit));
    BREAKS(bitmap_set(first->frees, live_unit), bitmap_clear(first->frees, live_unit));
    BREAKS(bitmap_set(first->frees, free_unit + 1), bitmap_clear(first->frees, free_unit + 1));
    BREAKS(bitmap_clear(first->starts, first->first), bitmap_set(first->starts, first->first));
    BREAKS(bitmap_set(first->starts, first->limit - 1), bitmap_clear(first->starts, first->limit - 1));
    BREAKS(first->live_units++, first->live_units--);
    BREAKS(first->dirty = !first->dirty, first->dirty = !first->dirty);
    BREAKS(first->owner = child, first->owner = r);
    BREAKS(r->chunks->prev = first, r->chunks->prev = NULL);
    BREAKS(r->children->parent = NULL, r->children->parent = r);
    BREAKS(r->peak = 0, r->peak = r->held);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("calls");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, figure_6_1);
    tcase_add_test(tests, figure_6_2);
    tcase_add_test(tests, objects_are_aligned_and_apart);
    tcase_add_test(tests, no_size_is_too_big_to_refuse);
    tcase_add_test(tests, calloc_zeroes_used_memory);
    tcase_add_test(tests, aligned_objects);
    tcase_add_test(tests, realloc_grows_in_place);
    tcase_add_test(tests, realloc_shrinks_in_place);
    tcase_add_test(tests, large_objects_have_chunks_of_their_own);
    tcase_add_test(tests, freed_neighbours_join);
    tcase_add_test(tests, the_last_object_gives_its_memory_back_to_the_bump_pointer);
    tcase_add_test(tests, freed_memory_is_used_again);
    tcase_add_test(tests, empty_chunks_go_back);
    tcase_add_test(tests, a_border_between_chunks_does_not_thrash);
    tcase_add_test(tests, strings);
    tcase_add_test(tests, every_pointer_knows_its_owner);
    tcase_add_test(tests, names);
    tcase_add_test(tests, usable_size_of_null);
    tcase_add_test(tests, the_version_is_the_headers);
    tcase_add_test(tests, functions_run_last_in_first_out_after_the_children);
    tcase_add_test(tests, functions_may_use_the_reap);
    tcase_add_test(tests, functions_cost_no_objects);
    tcase_add_test(tests, a_deep_tree_needs_no_stack);
    tcase_add_test(tests, a_clear_keeps_what_the_next_round_needs);
    tcase_add_test(tests, destroying_nothing);
    tcase_add_test(tests, a_walk_sees_each_object_once);
    tcase_add_test(tests, stats_add_up);
    tcase_add_test(tests, the_report_is_a_tree);
    tcase_add_test(tests, validity_notices_each_broken_equation);
    return run("reap", tests);
}
