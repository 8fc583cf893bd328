/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_survey.c: reapSurvey and reapHeldBytes, alone and beside threads that create and destroy
 * reaps. */

#include "support/reap_fixture.h"

/* --- a tree that stays ----------------------------------------------------------------------- */

/* What a survey of a few reaps has seen, in its order. */
struct seen {
    int count, stop_at;
    struct {
        void *reap, *parent;
        char name[32];
        unsigned depth;
        double age;
        struct reap_stats stats;
    } views[64];
};

static int see(const struct reap_view *view, void *arg)
{
    struct seen *seen = arg;
    if (seen->count < 64) {
        seen->views[seen->count].reap = view->reap;
        seen->views[seen->count].parent = view->parent;
        snprintf(seen->views[seen->count].name, 32, "%s", view->name);
        seen->views[seen->count].depth = view->depth;
        seen->views[seen->count].age = view->age;
        seen->views[seen->count].stats = view->stats;
    }
    return ++seen->count == seen->stop_at ? 42 : 0;
}

static void *new_named(void **parent, const char *name)
{
    void *new;
    reapCreate(&new, parent);
    ck_assert_ptr_nonnull(new);
    ck_assert_int_eq(reapSetName(&new, name), 0);
    return new;
}

TEST(a_survey_has_parents_first_and_newest_children_first, .modes = NOT_IN_PARTS)
{
    struct seen seen = {0};
    void *a = new_named(&reap, "a"), *b = new_named(&reap, "b"), *aa = new_named(&a, "aa");
    void *ab = new_named(&a, "ab"), *root = new_named(NULL, "root"), *shared = new_shared(&b, 70000);
    const void *order[] = {reap, b, shared, a, ab, aa};
    const void *parents[] = {NULL, reap, b, reap, a, a};
    const unsigned depths[] = {0, 1, 2, 1, 2, 2}, children[] = {2, 1, 0, 2, 0, 0};
    reapMalloc(&aa, 100000);
    reapFree(&ab, reapMalloc(&ab, 500));
    reapMalloc(&shared, 50);
    ck_assert_int_eq(reapSurvey(&reap, see, &seen), 0);
    ck_assert_int_eq(seen.count, 6);
    for (int i = 0; i < 6; i++) {
        struct reap_stats stats = stats_of(seen.views[i].reap);
        ck_assert_ptr_eq(seen.views[i].reap, order[i]);
        ck_assert_ptr_eq(seen.views[i].parent, parents[i]);
        ck_assert_uint_eq(seen.views[i].depth, depths[i]);
        ck_assert_uint_eq(stats.children, children[i]);
        ck_assert_mem_eq(&seen.views[i].stats, &stats, sizeof stats);
        ck_assert(seen.views[i].age < 0); /* nobody listens */
    }
    ck_assert_uint_eq(seen.views[0].stats.children, stats().children);
    ck_assert_str_eq(seen.views[0].name, "");
    ck_assert_str_eq(seen.views[4].name, "ab");
    ck_assert_uint_eq(seen.views[2].stats.limit, 70000);
    seen = (struct seen){0};
    reapSurvey(NULL, see, &seen);
    ck_assert_int_eq(seen.count, 7);
    reapDestroy(&root);
}

TEST(a_survey_stops)
{
    struct seen seen = {.stop_at = 3};
    for (int i = 0; i < 5; i++) new_named(&reap, "child");
    ck_assert_int_eq(reapSurvey(&reap, see, &seen), 42);
    ck_assert_int_eq(seen.count, 3);
    seen = (struct seen){.stop_at = 2};
    ck_assert_int_eq(reapSurvey(NULL, see, &seen), 42);
    ck_assert_int_eq(seen.count, 2);
}

TEST(ages_are_from_the_programs_clock)
{
    struct seen seen = {0};
    void *before = new_named(&reap, "before");
    reapSetClock(5);
    void *after = new_named(&reap, "after");
    reapSetClock(9);
    ck_assert_int_eq(reapSurvey(&after, see, &seen), 0);
    ck_assert(seen.views[0].age == 4);
    seen = (struct seen){0};
    reapSurvey(&before, see, &seen);
    ck_assert(seen.views[0].age < 0);
    reapSetClock(3); /* the reap is from later than now */
    seen = (struct seen){0};
    reapSurvey(&after, see, &seen);
    ck_assert(seen.views[0].age < 0);
    reapSetClock(0);
    seen = (struct seen){0};
    reapSurvey(&after, see, &seen);
    ck_assert(seen.views[0].age < 0);
}

static int see_and_allocate(const struct reap_view *view, void *arg)
{
    void *one = view->reap, *below;
    ck_assert_ptr_nonnull(reapMalloc(&one, 3000));
    if (view->depth < 3) reapCreate(&below, &one); /* behind the walk's back: it may or may not come there */
    ++*(int *)arg;
    return 0;
}

TEST(a_survey_may_allocate)
{
    int count = 0;
    for (int i = 0; i < 20; i++) new_named(&reap, "child");
    ck_assert_int_eq(reapSurvey(&reap, see_and_allocate, &count), 0);
    ck_assert_int_ge(count, 21);
}

static int add_held(const struct reap_view *view, void *arg)
{
    void *one = view->reap;
    *(size_t *)arg += stats_of(one).chunk_bytes;
    return 0;
}

/* The sum of reapStats over a tree. */
static size_t held_as_counted(void *top)
{
    size_t sum = 0;
    ck_assert_int_eq(reapSurvey(&top, add_held, &sum), 0);
    return sum;
}

#define assert_held(top) ck_assert_uint_eq(reapHeldBytes(&(top)), held_as_counted(top))

TEST(held_bytes_are_the_sum_of_a_tree, .modes = NOT_IN_PARTS)
{
    enum { REAPS = 300 };
    uint64_t chance = random_seed();
    void *reaps[REAPS] = {reap};
    assert_held(reap);
    for (unsigned i = 1; i < REAPS; i++) {
        void **parent = &reaps[random_below(&chance, i)];
        if (random_below(&chance, 8) == 0)
            reaps[i] = new_shared(parent, 0);
        else
            reapCreate(&reaps[i], parent);
        for (unsigned n = random_below(&chance, 4); n > 0; n--)
            reapMalloc(&reaps[i], random_below(&chance, 60000));
        void *passing; /* leaves its chunk to the parent */
        reapCreate(&passing, &reaps[i]);
        if (random_below(&chance, 2)) reapDestroy(&passing);
        if (i % 50 == 0) assert_held(reap);
    }
    for (unsigned i = 0; i < REAPS; i += 7) assert_held(reaps[i]);
    ck_assert_uint_gt(reapHeldBytes(&reap), REAPS * (size_t)8192);
}

TEST(held_bytes_of_a_deep_tree)
{
    enum { DEPTH = 3000 };
    void *parent = reap, *child = NULL;
    for (int i = 0; i < DEPTH; i++, parent = child) reapCreate(&child, &parent);
    ck_assert_uint_eq(reapHeldBytes(&reap),
                      8192 + DEPTH * (size_t)(reap_mode == MODE_ORDINARY ? 1024 : 8192));
    assert_held(child);
}

/* --- beside threads -------------------------------------------------------------------------- */

enum { STAYING = 120, TOPS = 3, ROUNDS = 6000 };

static void *tops[TOPS];

/* Creates and destroys children of reaps that stay. */
static void *come_and_go(void *arg)
{
    void *below[4];
    (void)arg;
    for (unsigned i = 0; !is_over; i++) {
        for (int k = 0; k < 4; k++)
            reapCreate(&below[k], k % 2 ? &below[k - 1] : &tops[(i + (unsigned)k) % TOPS]);
        for (int k = 0; k < 4; k++) reapMalloc(&below[k], i % 20000);
        reapDestroy(&below[i % 2 ? 0 : 2]);
        reapDestroy(&below[i % 2 ? 2 : 0]);
    }
    return NULL;
}

/* How often a survey has come to each of the reaps that stay: their names are numbers. */
struct visits {
    unsigned char stays[STAYING];
    size_t all;
};

static int visit(const struct reap_view *view, void *arg)
{
    struct visits *visits = arg;
    visits->all++;
    if (*view->name) visits->stays[atoi(view->name)]++;
    return 0;
}

/* Reaps that stay, among those that come and go; some of them below each other. */
static void make_staying(void)
{
    char name[16];
    void *staying[STAYING];
    for (int i = 0; i < TOPS; i++) reapCreate(&tops[i], &reap);
    for (int i = 0; i < STAYING; i++) {
        snprintf(name, sizeof name, "%d", i);
        staying[i] = new_named(i % 5 == 4 ? &staying[i - 1] : &tops[i % TOPS], name);
    }
}

TEST(a_survey_finds_all_that_stays_while_others_come_and_go)
{
    enum { THREADS = 3 };
    size_t most = 0, again = 0;
    make_staying();
    start_threads(THREADS, come_and_go, NULL);
    for (unsigned round = 0; round < shorter(ROUNDS, is_slowed() ? 100 : 400); round++) {
        struct visits visits = {{0}, 0};
        ck_assert_int_eq(reapSurvey(round % 2 ? NULL : &reap, visit, &visits), 0);
        for (int i = 0; i < STAYING; i++) {
            ck_assert_msg(visits.stays[i] > 0, "round %u did not come to %d", round, i);
            again += visits.stays[i] - 1u;
        }
        if (visits.all > most) most = visits.all;
    }
    end_threads();
    ck_assert_uint_gt(most, STAYING + TOPS + 1); /* the others were there */
    ck_assert_uint_eq(again, 0);
}

TEST(held_bytes_while_others_come_and_go)
{
    enum { THREADS = 3 };
    make_staying();
    size_t least = reapHeldBytes(&reap), most = 0;
    start_threads(THREADS, come_and_go, NULL);
    for (unsigned round = 0; round < steps_of(160000); round++) {
        size_t held = reapHeldBytes(&reap);
        ck_assert_uint_ge(held, least);
        if (held > most) most = held;
        reapHeldBytes(&tops[round % TOPS]);
    }
    end_threads();
    ck_assert_uint_gt(most, least);
    ck_assert_uint_lt(most, least + THREADS * (size_t)4 * 200000);
    assert_held(reap);
}

/* Moves reaps from parent to parent under the walks. */
static void *move_around(void *arg)
{
    void *child;
    (void)arg;
    reapCreate(&child, &tops[0]);
    for (unsigned i = 0; !is_over; i++) reapAdopt(&child, &tops[i % TOPS]);
    reapDestroy(&child);
    return NULL;
}

TEST(walks_while_others_adopt)
{
    enum { THREADS = 2 };
    make_staying();
    start_threads(THREADS, move_around, NULL);
    for (unsigned round = 0; round < steps_of(16000); round++) {
        struct visits visits = {{0}, 0};
        ck_assert_uint_ge(reapHeldBytes(&reap), STAYING * (size_t)1024);
        if (round % 100 == 0) reapSurvey(&reap, visit, &visits);
    }
    end_threads();
    assert_held(reap);
}

/* --- beside shared reaps that come and go ---------------------------------------------------- */

/* A reap whose objects fill its first chunk, where a shared reap's lock may have been. */
static void use_memory_anew(void)
{
    void *bytes;
    reapCreate(&bytes, NULL);
    for (int k = 0; k < 60; k++) memset(reapMalloc(&bytes, 96), 0x55, 96);
    reapDestroy(&bytes);
}

/* Creates shared reaps below one that stays, and roots. Each ends alone, with its parent, or by a clear of
 * the parent. Their memory then holds the program's bytes: a walk that still reads it would take them for
 * links. */
static void *share_and_end(void *arg)
{
    enum { SHARED = 6 };
    void *parent, *shared[SHARED];
    (void)arg;
    for (unsigned i = 0; !is_over; i++) {
        reapCreate(&parent, i % 3 == 2 ? NULL : &tops[i % TOPS]);
        for (int k = 0; k < SHARED; k++) {
            shared[k] = new_shared(k % 3 == 2 ? &shared[k - 1] : &parent, 0);
            if (i % 8 == 0) reapMalloc(&shared[k], 100);
        }
        for (int k = SHARED - 1; k >= 0 && i % 2; k--) reapDestroy(&shared[k]);
        if (i % 4 == 2) reapFreeAll(&parent);
        reapDestroy(&parent);
        shared[0] = new_shared(NULL, 0);
        reapDestroy(&shared[0]);
        if (i % 4 == 0) use_memory_anew();
    }
    return NULL;
}

TEST(a_survey_beside_shared_reaps_that_end)
{
    enum { THREADS = 3 };
    make_staying();
    start_threads(THREADS, share_and_end, NULL);
    for (unsigned round = 0; round < shorter(ROUNDS, is_slowed() ? 100 : 1000); round++) {
        struct visits visits = {{0}, 0};
        ck_assert_int_eq(reapSurvey(round % 2 ? NULL : &reap, visit, &visits), 0);
        for (int i = 0; i < STAYING; i++) ck_assert_int_eq(visits.stays[i], 1);
    }
    end_threads();
    assert_held(reap);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
