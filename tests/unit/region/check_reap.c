/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap.c: allocating. (interface.c has the examples of the thesis.) */
#define REAP_NO_INLINE /* the other tests have reapMalloc inline */
#include "support/expect.h"
#include "support/reap_fixture.h"

TEST(objects_are_aligned_and_apart)
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

static void refuse_all(void **handle)
{
    static const size_t sizes[] = {SIZE_MAX,
                                   SIZE_MAX - 1,
                                   SIZE_MAX - 15,
                                   SIZE_MAX - 16,
                                   SIZE_MAX / 2 + 1,
                                   PTRDIFF_MAX,
                                   (size_t)PTRDIFF_MAX - 4096,
                                   (size_t)1 << 62};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        errno = 0;
        ck_assert_ptr_null(reapMalloc(handle, sizes[i]));
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_ptr_null(reapCalloc(handle, 1, sizes[i]));
        ck_assert_ptr_null(reapCalloc(handle, sizes[i], 3));
        ck_assert_ptr_null(reapAlignedAlloc(handle, 4096, sizes[i]));
        for (volatile unsigned power = 62; power < 64; power++)
            ck_assert_ptr_null(reapAlignedAlloc(handle, (size_t)1 << power, sizes[i]));
        ck_assert_ptr_null(reapMemdup(handle, sizes, sizes[i]));
    }
    void *object = reapMalloc(handle, 10), *behind = reapMalloc(handle, 10);
    ck_assert_ptr_null(reapRealloc(handle, object, OPAQUE(SIZE_MAX)));
    ck_assert_ptr_null(reapRealloc(handle, object, OPAQUE(PTRDIFF_MAX)));
    ck_assert_uint_eq(reapUsableSize(object), 16);
    reapFree(handle, object);
    reapFree(handle, behind);
}

/* As a region, and as a heap; also where large objects lie among the others. */
TEST(no_size_is_too_big_to_refuse, .modes = ORDINARY)
{
    static char buffer[65536];
    void *fixed;
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    struct reap_stats before = stats(), after;
    reapFree(&reap, reapMalloc(&reap, 10));
    refuse_all(&reap);
    refuse_all(&reap);
    after = stats();
    ck_assert_uint_eq(after.chunk_bytes, before.chunk_bytes);
    ck_assert_uint_eq(after.live_objects, 0);
    ck_assert_int_eq(reapCreateWith(&fixed, NULL, &options), 0);
    refuse_all(&fixed);
    refuse_all(&fixed);
    ck_assert_uint_eq(stats_of(fixed).live_objects, 0);
    reapDestroy(&fixed);
}

/* A new chunk that an object nearly fills does not take the place of the one with more room. */
TEST(the_bigger_hole_stays, .modes = NOT_IN_PARTS)
{
    /* Always a heap then: the rest of the new chunk comes first. */
    needs(!apart_on, "all objects are watched");
    char *small = reapMalloc(&reap, 16);
    char *big = reapMalloc(&reap, 15500);
    ck_assert_ptr_eq(reapMalloc(&reap, 16), small + 16);
    ck_assert_uint_eq(stats().chunks, 2);
    big[15499] = 1;
    assert_valid(reap);
    reapMalloc(&reap, 20000);
    ck_assert_ptr_ne(reapMalloc(&reap, 6000), small + 32); /* this chunk has more */
}

TEST(calloc_zeroes_used_memory)
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
    ck_assert_ptr_null(reapCalloc(&reap, OPAQUE(SIZE_MAX / 2), 3));
    ck_assert_int_eq(errno, ENOMEM);
}

TEST(aligned_objects)
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
    /* Volatile, because clang 14 breaks down over an alignment that it knows to be impossible. */
    static volatile size_t bad[] = {0, 3, 24, SIZE_MAX}, highest = (size_t)1 << 63;
    for (size_t i = 0; i < 4; i++) {
        errno = 0;
        ck_assert_ptr_null(reapAlignedAlloc(&reap, bad[i], 10));
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_ptr_null(reapAlignedAlloc(&reap, highest, 10));
}

TEST(realloc_grows_in_place)
{
    char *object = reapRealloc(&reap, NULL, 10);
    strcpy(object, "123456789");
    char *grown = reapRealloc(&reap, object, 1000);
    if (!apart_on) ck_assert_ptr_eq(grown, object); /* at the bump pointer */
    char *last = reapMalloc(&reap, 10);
    char *moved = reapRealloc(&reap, grown, 2000);
    if (reap_mode != MODE_PARTS) ck_assert_ptr_ne(moved, grown); /* there nothing need be behind it */
    ck_assert_str_eq(moved, "123456789");
    ck_assert_uint_eq(reapUsableSize(last), 16);
    ck_assert_uint_eq(stats().live_objects, 2);
}

TEST(realloc_shrinks_in_place)
{
    char *object = reapMalloc(&reap, 1000), *behind = reapMalloc(&reap, 10);
    char *less = reapRealloc(&reap, object, 100);
    ck_assert(less == object || apart_on);
    ck_assert_uint_eq(reapUsableSize(less), 112);
    ck_assert_uint_eq(stats().live_bytes, 128);
    char *least = reapRealloc(&reap, less, 0);
    ck_assert(least == less || apart_on);
    ck_assert_uint_eq(reapUsableSize(least), 16);
    less = reapRealloc(&reap, behind, 0);
    ck_assert(less == behind || apart_on);
    ck_assert_uint_eq(stats().live_objects, 2);
}

TEST(large_objects_have_chunks_of_their_own, .modes = ORDINARY)
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
    ck_assert_uint_le(stats().chunk_bytes, before + (apart_on ? 112 + 32 : 0));
    reapFree(&reap, object);
    ck_assert_uint_ge(stats().peak_chunk_bytes, 5000000);
}

/* Its pages move with the chunk's header, among other large objects that lie before and behind it in the
 * reap's list. */
static int count_large(void *object, size_t size, void *sum)
{
    (void)object;
    *(size_t *)sum += size;
    return 0;
}

TEST(large_objects_move_as_they_grow)
{
    enum { STEPS = 7 };
    size_t least = (size_t)3 << 20, size = least;
    char *before = reapMalloc(&reap, 100000), *grown = reapMalloc(&reap, size),
         *behind = reapMalloc(&reap, 200000);
    memset(before, 1, 100000);
    memset(behind, 3, 200000);
    memset(grown, 2, size);
    for (unsigned i = 0; i < STEPS; i++, size = size * 3 / 2) {
        void *owner;
        size_t sum = 0;
        ck_assert_ptr_nonnull(grown = reapRealloc(&reap, grown, size * 3 / 2));
        ck_assert(all_bytes(grown, size, 2));
        memset(grown + size, 2, size * 3 / 2 - size);
        ck_assert(reapOf(grown + size, &owner) == 0 && owner == reap);
        reapWalk(&reap, count_large, &sum);
        ck_assert_uint_eq(sum, 100000 + 200000 + reapUsableSize(grown));
        ck_assert_uint_eq(stats().live_bytes, sum);
        ck_assert_uint_ge(stats().chunk_bytes, sum);
        if (i == 3) {
            reapFree(&reap, before);
            before = reapMalloc(&reap, 100000);
            memset(before, 1, 100000);
        }
    }
    ck_assert(all_bytes(before, 100000, 1) && all_bytes(behind, 200000, 3));
    reapFree(&reap, grown);
    ck_assert_uint_eq(stats().live_bytes, 300000);
    reapFree(&reap, before);
    reapFree(&reap, behind);
}

TEST(strings)
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

/* Gaps side by side join, in the first chunk and in others, before the reap grows. */
TEST(gaps_join_before_the_reap_grows, .modes = ORDINARY)
{
    enum { N = 8000 };
    static void *objects[N];
    struct reap *r = reap;
    needs(!apart_on, "all objects are watched");
    for (int count = 40; count <= N; count *= 10) {
        for (int i = 0; i < count; i++) objects[i] = reapMalloc(&reap, 100);
        while (r->bump_max - r->bump >= 112) reapMalloc(&reap, 100);
        size_t held = stats().chunk_bytes;
        for (int i = 0; i + 3 < count; i += 4)
            for (int k = 0; k < 3; k++) reapFree(&reap, objects[i + (k + i / 4) % 3]);
        for (int i = 0; i + 3 < count; i += 4) reapMalloc(&reap, 3 * 112);
        ck_assert_uint_le(stats().chunk_bytes, held + held / 8 + 32768); /* some gaps end with their chunk */
        reapFreeAll(&reap);
        reapTrim(&reap, 0);
    }
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
