/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_depot.c: dead reaps that are kept for the next ones, and how they go back. */
#include "support/check_reap.h"

#include "arena/reclaim.h"
#include "hoard/apart.h"
#include "reap/reap_depot.h"

enum { SIBLINGS = 3, MANY = 20, FIT = 2 * 8 };

static void *connection;

/* A request whose children end with it. Which they were. */
static void live_as_request(struct reap **siblings)
{
    void *request, *handle;
    reapCreate(&request, &connection);
    for (int i = 0; i < SIBLINGS; i++) {
        reapCreate(&handle, &request);
        siblings[i] = handle;
        ck_assert_ptr_nonnull(reapMalloc(&handle, 64));
        assert_valid(handle);
    }
    assert_valid(request);
    reapDestroy(&request);
}

/* More children at once than a depot and the next one have places for. */
static void have_many(void)
{
    void *children[MANY];
    for (int i = 0; i < MANY; i++) reapCreate(&children[i], &connection);
    for (int i = 0; i < MANY; i++) reapDestroy(&children[i]);
}

static bool begin(void)
{
    reapCreate(&connection, NULL);
    return !apart_on;
}

static void end(void)
{
    assert_valid(connection);
    reapDestroy(&connection);
}

/* The next request's children are those of the last one, though a program has written to them. */
TEST(siblings_that_ended_come_back)
{
    struct reap *before[SIBLINGS], *after[SIBLINGS];
    needs(begin(), "a tool watches");
    for (int i = 0; i < 20; i++) live_as_request(before);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < SIBLINGS; i++) memset(before[i], 0xff, REAP_SMALL_SIZE - REAP_HEADER);
        live_as_request(after);
        for (int i = 0; i < SIBLINGS; i++) {
            bool is_one_of_them = false;
            for (int j = 0; j < SIBLINGS; j++) is_one_of_them |= after[i] == before[j];
            ck_assert(is_one_of_them);
        }
    }
    end();
}

/* One whose header is not as it was goes back to the backend; the reap of a header that is whole does not. */
TEST(what_was_written_to_headers_is_seen)
{
    struct reap *siblings[SIBLINGS];
    needs(begin(), "a tool watches");
    for (int way = 0; way < 3; way++) {
        live_as_request(siblings);
        size_t kept = reap_depot_bytes();
        struct reap_chunk *first = reap_first_chunk(siblings[0]);
        if (way == 0) first->owner = siblings[1];
        if (way == 1) first->size = REAP_FIRST_SIZE;
        if (way == 2) first->is_mapped = false;
        live_as_request(siblings);
        ck_assert_uint_eq(reap_depot_bytes(), kept);
    }
    end();
}

/* --- the way back ---------------------------------------------------------------------------- */

static void trim_a_reap(void) { ck_assert_uint_ge(reapTrim(&connection, 0), SIBLINGS * REAP_SMALL_SIZE); }

static void trim_all(void) { hoard_trim(0); }

static void take_a_statistic(void)
{
    struct hoard_stats unused;
    hoard_stats(&unused);
}

static int see_class(const struct hoard_class *class, void *arg)
{
    (void)class, (void)arg;
    return 1;
}

static void walk_classes(void) { hoard_walk_classes(see_class, NULL); }

static void look_twice(void)
{
    reap_depot_give_idle();
    reap_depot_give_idle();
}

/* Where no thread purges: whoever keeps a reap looks, once after each purge. */
static void keep_after_purges(void)
{
    for (int i = 0; i < 2; i++) {
        uint64_t before = arena_purged_at();
        for (; arena_purged_at() == before; usleep(1000)) arena_purge_if_due();
        void *roots[3];
        for (int k = 0; k < 3; k++) reapCreate(&roots[k], NULL); /* of another size */
        for (int k = 0; k < 3; k++) reapDestroy(&roots[k]);
    }
    ck_assert_uint_eq(reap_depot_bytes(), 2 * REAP_FIRST_SIZE); /* and one is kept by their list */
    trim_all();
}

static void (*const ways_back[])(void) = {trim_a_reap,  trim_all,   take_a_statistic,
                                          walk_classes, look_twice, keep_after_purges};

TEST(what_is_kept_goes_back, .times = sizeof ways_back / sizeof *ways_back)
{
    struct hoard_stats before, after;
    use_path(0, "purge_ms=1");
    needs(begin(), "a tool watches");
    hoard_stats(&before);
    have_many();
    ck_assert_uint_eq(reap_depot_bytes(), FIT * REAP_SMALL_SIZE);
    reapTrim(&connection, 0);
    have_many();
    ways_back[_i]();
    ck_assert_uint_eq(reap_depot_bytes(), 0);
    reapTrim(&connection, 0);
    hoard_stats(&after);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    end();
}

/* A look gives back what was there all the time, and leaves what came back. */
TEST(what_is_used_stays)
{
    struct reap *siblings[SIBLINGS];
    needs(begin(), "a tool watches");
    have_many();
    reap_depot_give_idle();
    ck_assert_uint_eq(reap_depot_bytes(), FIT * REAP_SMALL_SIZE);
    for (int i = 0; i < 4; i++) {
        live_as_request(siblings);
        reap_depot_give_idle();
        ck_assert_uint_ge(reap_depot_bytes(), (SIBLINGS - 1) * REAP_SMALL_SIZE);
        ck_assert_uint_le(reap_depot_bytes(), (SIBLINGS + 1) * REAP_SMALL_SIZE);
    }
    end();
}

/* While the thread that purges sleeps, a reap that is kept wakes it; and it sleeps again. */
TEST(the_thread_that_purges_finds_it)
{
    use_path(0, "purge_ms=20");
    needs(begin(), "a tool watches");
    hoard_purge_when_idle();
    for (int round = 0; round < 2; round++) {
        hoard_trim(0);
        while (atomic_load(&arena_watched) == 0) hoard_free(hoard_malloc(100)); /* the first one starts it */
        usleep(20000);
        have_many();
        while (reap_depot_bytes() != 0) usleep(1000);
    }
    end();
}

/* --- with threads ---------------------------------------------------------------------------- */

/* Another thread, which has no depot yet, takes all that this one has kept; and it stays so when both go on.
 */
static void *create_many(void *children)
{
    for (int i = 0; i < FIT + 1; i++)
        reapCreate((void **)children + i, &connection); /* one is the cached child */
    return NULL;
}

TEST(what_does_not_fit_is_found_by_others)
{
    pthread_t thread;
    void *children[FIT + 1];
    needs(begin(), "a tool watches");
    have_many();
    for (int round = 0; round < 3; round++) {
        ck_assert_uint_eq(reap_depot_bytes(), FIT * REAP_SMALL_SIZE);
        ck_assert_int_eq(pthread_create(&thread, NULL, create_many, children), 0);
        pthread_join(thread, NULL);
        ck_assert_uint_eq(reap_depot_bytes(), 0);
        for (int i = 0; i < FIT + 1; i++) reapDestroy(&children[i]);
    }
    end();
}

/* Threads fill depots and empty them, whichever are theirs, while one of them looks and trims. */
static void *have_requests(void *number)
{
    struct reap *siblings[SIBLINGS];
    for (unsigned n = steps_of(4000), i = 0; i < n; i++) {
        live_as_request(siblings);
        if (number == (void *)0 && i % 16 == 0) reap_depot_give_idle();
        if (number == (void *)0 && i % 64 == 0) reap_depot_trim();
    }
    return NULL;
}

TEST(threads_share_depots)
{
    pthread_t threads[4];
    needs(begin(), "a tool watches");
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, have_requests, (void *)i), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    hoard_trim(0);
    ck_assert_uint_eq(reap_depot_bytes(), 0);
    end();
}

int main(void) { return run_tests((struct suite){0}); }
