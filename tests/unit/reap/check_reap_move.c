/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_move.c: objects that go to another reap, and reaps that go below another one. */

#include "support/reap_fixture.h"

static void *other;

static void *owner_of(const void *pointer)
{
    void *owner;
    reapOf(pointer, &owner);
    return owner;
}

/* A large object keeps its place: its chunk is the other reap's. */
TEST(a_large_object_moves_with_its_chunk)
{
    reapCreate(&other, NULL);
    char *object = memset(reapMalloc(&reap, 3000000), 7, 3000000);
    size_t before = stats().chunk_bytes + stats_of(other).chunk_bytes;
    ck_assert_ptr_eq(reapMove(object, &reap, &other), object);
    ck_assert_ptr_eq(owner_of(object + 2999999), other);
    ck_assert_uint_eq(stats().live_bytes, 0);
    ck_assert_uint_eq(stats_of(other).live_bytes, 3000000);
    ck_assert_uint_eq(stats().chunk_bytes + stats_of(other).chunk_bytes, before);
    object = reapRealloc(&other, object, 4000000);
    ck_assert_int_eq(object[2999999], 7);
    reapDestroy(&other);
    ck_assert_ptr_null(owner_of(object));
}

/* What both reaps are counted in is not counted twice, not for a moment. */
TEST(a_move_below_one_limit_costs_nothing)
{
    void *a, *b;
    reapCreate(&a, &reap);
    reapCreate(&b, &reap);
    reapCreate(&other, NULL);
    char *small = reapMalloc(&a, 992), *large = reapMalloc(&a, 99008);
    ck_assert_int_eq(reapSetLimit(&reap, 100000), 0);
    small = reapMove(small, &a, &b);
    large = reapMove(large, &a, &b);
    ck_assert_ptr_nonnull(small);
    ck_assert_ptr_nonnull(large);
    ck_assert_uint_eq(stats_of(b).live_bytes, 100000);
    ck_assert_ptr_nonnull(reapMove(large, &b, &other));
    ck_assert_ptr_null(reapMove(memset(reapMalloc(&other, 99100), 1, 99100), &other, &b));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_eq(reapMove(large, &other, &a), large);
    ck_assert_ptr_null(reapMalloc(&a, 1));
    reapDestroy(&other);
    assert_valid(reap);
}

/* What a reap has drawn ahead counts for what is moved into it. */
TEST(a_move_may_use_the_room)
{
    reapCreate(&other, NULL);
    ck_assert_int_eq(reapSetLimit(&reap, 10000), 0);
    while (stats().live_bytes + 96 <= 10000 - 96) reapMalloc(&reap, 96);
    size_t left = 10000 - stats().live_bytes;
    ck_assert_ptr_nonnull(reapMove(reapMalloc(&other, left / 16 * 16), &other, &reap));
    ck_assert_ptr_null(reapMalloc(&reap, 1));
    reapDestroy(&other);
}

TEST(a_reap_is_adopted)
{
    void *child, *grandchild;
    reapCreate(&other, NULL);
    reapCreate(&child, &reap);
    reapCreate(&grandchild, &child);
    char *object = reapStrdup(&grandchild, "here");
    ck_assert_int_eq(reapAdopt(&child, &other), 0);
    ck_assert_ptr_eq(reapParent(&child), other);
    ck_assert_uint_eq(stats().children, 0);
    ck_assert_uint_eq(stats_of(other).children, 1);
    reapFreeAll(&reap);
    ck_assert_str_eq(object, "here");
    ck_assert_int_eq(reapAdopt(&other, &grandchild), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(reapAdopt(&child, &child), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(reapAdopt(&child, NULL), 0);
    ck_assert_ptr_null(reapParent(&child));
    reapDestroy(&other);
    ck_assert_str_eq(object, "here");
    ck_assert_int_eq(reapAdopt(&child, &reap), 0);
    reapFreeAll(&reap);
    ck_assert_ptr_null(owner_of(object));
}

TEST(limits_move_along)
{
    void *child, *grandchild;
    reapCreate(&other, NULL);
    reapCreate(&child, &reap);
    reapCreate(&grandchild, &child);
    ck_assert_int_eq(reapSetLimit(&reap, 10000), 0);
    ck_assert_int_eq(reapSetLimit(&other, 4000), 0);
    reapMalloc(&child, 1600);
    reapMalloc(&grandchild, 3200);
    ck_assert_int_eq(reapAdopt(&child, &other), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_eq(reapParent(&child), reap);
    ck_assert_int_eq(reapSetLimit(&other, 5000), 0);
    ck_assert_int_eq(reapAdopt(&child, &other), 0);
    assert_valid(other);
    assert_valid(grandchild);
    ck_assert_ptr_null(reapMalloc(&grandchild, 1000));
    ck_assert_ptr_nonnull(reapMalloc(&reap, 10000)); /* all of it is here again */
    ck_assert_int_eq(reapAdopt(&child, NULL), 0);
    ck_assert_ptr_nonnull(reapMalloc(&grandchild, 1000000));
    ck_assert_ptr_nonnull(reapMalloc(&other, 4990));
    reapDestroy(&child);
    reapDestroy(&other);
}

enum { ROUNDS = 2000 };

/* Each thread adopts its own reaps to and fro below the same two parents. */
static void *to_and_fro(void *arg)
{
    void *mine = NULL;
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 10 == 0) reapCreate(&mine, &reap);
        ck_assert_int_eq(reapAdopt(&mine, i % 2 ? &reap : &other), 0);
        reapMalloc(&mine, 100);
        if (i % 10 == 9) reapDestroy(&mine);
    }
    return NULL;
}

TEST(threads_adopt)
{
    reapCreate(&other, NULL);
    in_threads(4, to_and_fro, NULL);
    ck_assert_uint_eq(stats().children, 0);
    ck_assert_uint_eq(stats_of(other).children, 0);
    reapDestroy(&other);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
