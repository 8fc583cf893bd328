/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_life.c: who is who, and how reaps begin and end. */

#include "hoard/apart.h"
#include "support/reap_fixture.h"

#include <gnu/libc-version.h>

/* --- who and what ---------------------------------------------------------------------------- */

TEST(every_pointer_knows_its_owner)
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

TEST(names)
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

/* However often it changes. */
TEST(names_take_no_more_than_the_longest)
{
    char name[4096] = "";
    for (int i = 0; i < 10000; i++) {
        ck_assert_int_eq(reapSetName(&reap, i % 3 ? "a name" : NULL), 0);
        ck_assert_int_eq(reapName(&reap) != NULL, i % 3 != 0);
    }
    ck_assert_uint_eq(stats().chunk_bytes, 8192);
    for (size_t i = 0; i < sizeof name - 1; i++) {
        name[i] = (char)('a' + i % 26);
        ck_assert_int_eq(reapSetName(&reap, name), 0);
        ck_assert_str_eq(reapName(&reap), name);
    }
    ck_assert_uint_le(stats().chunk_bytes, 32768);
    reapSetName(&reap, NULL);
    reapFreeAll(&reap);
    ck_assert_ptr_null(reapName(&reap));
    ck_assert_int_eq(reapSetName(&reap, ""), 0);
    ck_assert_str_eq(reapName(&reap), "");
}

/* Short names take no memory of their reaps' chunks, whatever buffer they are passed in. */
TEST(short_names, .modes = ORDINARY)
{
    char buffer[2][64], made_up[64];
    void *one, *two;
    for (int i = 0; i < 3000; i++) {
        reapCreate(&one, NULL);
        reapCreate(&two, NULL);
        char *common = buffer[i % 2];
        snprintf(common, sizeof buffer[0], "request of kind %d", i % 7);
        snprintf(made_up, sizeof made_up, "request number %d", i);
        ck_assert_int_eq(reapSetName(&one, common), 0);
        ck_assert_int_eq(reapSetName(&two, i % 3 == 0 ? made_up : common), 0);
        memset(common, 'x', 5);
        snprintf(buffer[(i + 1) % 2], sizeof buffer[0], "request of kind %d", i % 7);
        common = buffer[(i + 1) % 2];
        if (i % 5 == 0) reapFreeAll(&one);
        if (i % 5 == 1) ck_assert_int_eq(reapSetName(&one, made_up), 0);
        if (i % 5 == 2) ck_assert_int_eq(reapSetName(&one, NULL), 0);
        const char *place = reapName(&two);
        reapFreeAll(&two);
        ck_assert_ptr_eq(reapName(&two), place);
        ck_assert_str_eq(reapName(&two), i % 3 == 0 ? made_up : common);
        if (i % 5 == 2)
            ck_assert_ptr_null(reapName(&one));
        else
            ck_assert_str_eq(reapName(&one), i % 5 == 1 ? made_up : common);
        reapDestroy(&one);
        reapDestroy(&two);
    }
    reapCreate(&one, NULL);
    reapCreate(&two, NULL);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(reapSetName(&one, "common"), 0);
        ck_assert_int_eq(reapSetName(&one, NULL), 0);
        ck_assert_int_eq(reapSetName(&two, "common"), 0);
        if (i == 0) reapDestroy(&two), reapCreate(&two, NULL);
    }
    ck_assert_int_eq(reapSetName(&two, "common"), 0);
    reapDestroy(&one);
    reapCreate(&one, NULL);
    ck_assert_int_eq(reapSetName(&one, "common"), 0);
    ck_assert_str_eq(reapName(&one), "common");
    ck_assert_str_eq(reapName(&two), "common");
    size_t room = stats_of(one).chunk_bytes;
    for (size_t length = 1; length < 200; length++) { /* from a short one to long ones, and back by a clear */
        memset(made_up, 'a', sizeof made_up);
        made_up[length % sizeof made_up] = '\0';
        ck_assert_int_eq(reapSetName(&one, made_up), 0);
        if (length % 7 == 0) reapFreeAll(&one);
        ck_assert_str_eq(reapName(&one), made_up);
    }
    ck_assert_uint_eq(stats_of(one).chunk_bytes, room);
    reapDestroy(&one);
    reapDestroy(&two);
}

/* All others are copied: what is written to, and what may be unloaded. */
TEST(constants_of_the_program_are_names_without_a_copy, .modes = ORDINARY)
{
    static const char constant[] = "a constant of the program, of more bytes than a short name's place has";
    static const char too_long[5000] = {[0 ... 4998] = 'n'};
    static char written[] = "text";
    const char *library = gnu_get_libc_version(), *const others[] = {written, library};
    void *named;
    for (int i = 0; i < 3; i++) {
        reapCreate(&named, &reap);
        ck_assert_int_eq(reapSetName(&named, constant), 0);
        ck_assert_ptr_eq(reapName(&named), constant);
        reapMalloc(&named, 10000);
        reapFreeAll(&named);
        ck_assert_ptr_eq(reapName(&named), constant);
        ck_assert_int_eq(reapSetName(&named, NULL), 0);
        ck_assert_ptr_null(reapName(&named));
        ck_assert_int_eq(reapSetName(&named, too_long), -1);
        ck_assert_int_eq(errno, ENAMETOOLONG);
        ck_assert_int_eq(reapSetName(&named, constant + 2), 0);
        ck_assert_int_eq(reapSetName(&named, constant), 0); /* a second name has a place of its own */
        ck_assert_str_eq(reapName(&named), constant);
        reapDestroy(&named);
    }
    for (int i = 0; i < 2; i++) {
        reapCreate(&named, &reap);
        ck_assert_int_eq(reapSetName(&named, others[i]), 0);
        ck_assert_str_eq(reapName(&named), others[i]);
        ck_assert_ptr_ne(reapName(&named), others[i]);
        reapDestroy(&named);
    }
}

TEST(many_names)
{
    char name[32];
    void *again;
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof name, "%d", i);
        for (int j = 0; j < 3; j++) {
            reapCreate(&again, NULL);
            ck_assert_int_eq(reapSetName(&again, name), 0);
            ck_assert_str_eq(reapName(&again), name);
            reapDestroy(&again);
        }
    }
    reapCreate(&again, NULL);
    ck_assert_int_eq(reapSetName(&again, "one more name"), 0);
    ck_assert_str_eq(reapName(&again), "one more name");
    reapDestroy(&again);
}

/* A reap keeps chunks for later rounds, and gives them back when it is asked to. */
TEST(trim, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    const size_t first = 8192;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2000; i++) ck_assert_ptr_nonnull(reapMalloc(&reap, 200));
        reapFreeAll(&reap);
    }
    size_t kept = stats().chunk_bytes;
    ck_assert_uint_gt(kept, 128 * 1024);
    ck_assert_uint_eq(reapTrim(&reap, SIZE_MAX), 0);
    ck_assert_uint_eq(stats().chunk_bytes, kept);
    size_t given = reapTrim(&reap, 64 * 1024);
    ck_assert_uint_eq(stats().chunk_bytes, kept - given);
    ck_assert_uint_le(stats().chunk_bytes, first + 64 * 1024);
    char *object = reapMalloc(&reap, 100);
    memset(object, 'a', 100);
    reapTrim(&reap, 0);
    ck_assert_uint_eq(stats().chunk_bytes, first);
    ck_assert_int_eq(object[99], 'a');
    for (int i = 0; i < 2000; i++) ck_assert_ptr_nonnull(reapMalloc(&reap, 200));
    ck_assert_uint_eq(reapTrim(&reap, 0), 0); /* chunks in use stay */
    void *child;
    reapCreate(&child, &reap);
    reapDestroy(&child);
    ck_assert_uint_ge(reapTrim(&reap, 0), 1024); /* a chunk for the next child */
    ck_assert_uint_eq(reapTrim(&reap, 0), 0);
}

static void *free_all_but_last(void *objects_)
{
    for (char **object = objects_; object[1]; object++) reapFreeAny(*object);
    return NULL;
}

/* Objects that another thread has freed wait for the reap. A trim takes them in, and their chunks go back. */
TEST(trim_of_what_another_thread_freed, .modes = ORDINARY)
{
    enum { N = 20000 };
    static char *objects[N + 1];
    size_t first = 8192;
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, i % 1000 ? 100 : 100000);
    memset(objects[N - 1], 'a', 100);
    in_thread(free_all_but_last, objects);
    ck_assert_uint_ge(reapTrim(&reap, 0), N * 100 / 2 + N / 1000 * 100000);
    ck_assert_uint_eq(stats().live_bytes, 112);
    ck_assert_int_eq(objects[N - 1][99], 'a');
    reapFree(&reap, objects[N - 1]);
    reapTrim(&reap, 0);
    ck_assert_uint_eq(stats().chunk_bytes, first);
}

/* The newest chunk has lost its objects, and stayed as the place of the next ones. */
TEST(trim_of_an_empty_chunk, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    size_t chunks = 0;
    void *object = NULL;
    while (stats().chunk_bytes < 1000000) reapMalloc(&reap, 100);
    for (chunks = stats().chunks; stats().chunks == chunks;) object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    ck_assert_uint_eq(stats().chunks, chunks + 1);
    size_t live = stats().live_bytes, held = stats().chunk_bytes, given = reapTrim(&reap, 0);
    ck_assert_uint_gt(given, 8192);
    ck_assert_uint_eq(stats().chunk_bytes, held - given);
    ck_assert_uint_eq(stats().chunks, chunks);
    ck_assert_uint_eq(stats().live_bytes, live);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 100));
    assert_valid(reap);
}

/* Behind a mark, and from a walk's function. */
static int trim_within(void *object, size_t size, void *arg)
{
    (void)size, (void)arg;
    reapFree(&reap, object);
    reapTrim(&reap, 0);
    return 0;
}

TEST(trim_at_any_moment, .modes = ORDINARY)
{
    enum { N = 10000 };
    static char *objects[N];
    reap_mark mark;
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 100);
    for (int i = 0; i < N; i += 2) reapFree(&reap, objects[i]);
    reapMark(&reap, &mark);
    for (int i = 0; i < N; i += 2) objects[i] = reapMalloc(&reap, 100);
    for (int i = 0; i < N; i += 4) reapFree(&reap, objects[i]);
    for (int i = 1; i < N; i += 4) reapFree(&reap, objects[i]);
    for (int round = 0; round < 2; round++) {
        reapTrim(&reap, 0);
        assert_valid(reap);
        for (int i = 0; i < 5 * N; i++) reapMalloc(&reap, 100);
        reapTrim(&reap, 0);
        reapRewind(&reap, &mark);
    }
    reapTrim(&reap, 0);
    ck_assert_uint_eq(stats().live_objects, N / 4);
    reapUnmark(&reap, &mark);
    ck_assert_int_eq(reapWalk(&reap, trim_within, NULL), 0);
    ck_assert_uint_eq(stats().live_objects, 0);
    ck_assert_uint_eq(stats().chunk_bytes, 8192);
}

TEST(usable_size_of_null) { ck_assert_uint_eq(reapUsableSize(NULL), 0); }

TEST(the_version_is_the_headers)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", REAP_VERSION_MAJOR, REAP_VERSION_MINOR, REAP_VERSION_PATCH);
    ck_assert_str_eq(reapVersion(), version);
    ck_assert_str_eq(reapVersion(), REAP_VERSION);
}

/* --- clearing and destroying ----------------------------------------------------------------- */

static char order[100];

static void note(void *arg) { strcat(order, arg); }

static void nothing(void *arg) { (void)arg; }

TEST(functions_run_last_in_first_out_after_the_children)
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

/* Records are not objects, and those taken back are used again. */
TEST(functions_cost_no_objects)
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

/* In the chunk before the newest one, the gaps at the end are on free lists. */
TEST(a_record_takes_no_listed_gap, .modes = ORDINARY)
{
    enum { MOST = 200 };
    static void *objects[MOST];
    char name[1200];
    unsigned n = 0;
    const struct reap *it = reap_behind(reap);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    while (stats().chunks < 6) objects[n++] = reapMalloc(&reap, 8000);
    reapFree(&reap, objects[n - 2]); /* the last one in the chunk before */
    while (it->bump_max - it->bump >= 1000) reapMalloc(&reap, 100);
    ck_assert_int_eq(reapSetName(&reap, name), 0);
    assert_valid(reap);
    ck_assert_str_eq(reapName(&reap), name);
}

TEST(a_chunk_with_a_record_stays, .modes = ORDINARY)
{
    enum { N = 1000 };
    static void *objects[N];
    order[0] = '\0';
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 100);
    reapOnDestroy(&reap, note, (void *)"x");
    for (int i = 0; i < N; i++) reapFree(&reap, objects[i]);
    reapTrim(&reap, 0);
    assert_valid(reap);
    ck_assert_uint_eq(stats().chunks, 2);
    reapFreeAll(&reap);
    ck_assert_str_eq(order, "x");
}

TEST(a_deep_tree_needs_no_stack)
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

/* What a clear keeps follows what is used, and forgets a burst. */
TEST(a_clear_keeps_what_the_next_round_needs, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
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

static size_t child_with(int objects)
{
    void *child;
    reapCreate(&child, &reap);
    size_t bytes = stats_of(child).chunk_bytes;
    for (int round = 0; round < 2; round++) {
        reapFreeAll(&child);
        for (int i = 0; i < objects; i++) reapMalloc(&child, 100);
        assert_valid(child);
    }
    reapDestroy(&child);
    return bytes;
}

/* Children begin with what the ones before them needed, between 1 and 32 KiB. */
TEST(children_learn_from_each_other, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    ck_assert_uint_eq(child_with(100), 1024);
    ck_assert_uint_eq(child_with(100), 8192);
    ck_assert_uint_eq(child_with(100), 16384);
    ck_assert_uint_eq(child_with(1000), 16384);
    ck_assert_uint_eq(child_with(1000), 16384); /* one alone may be an exception */
    ck_assert_uint_eq(child_with(1000), 32768);
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(child_with(3), 32768);
    ck_assert_uint_eq(child_with(3), 16384);
    ck_assert_uint_eq(child_with(3), 8192);
    for (int i = 0; i < 10; i++) ck_assert_uint_eq(child_with(3), 1024);
    void *root;
    reapCreate(&root, NULL);
    ck_assert_uint_eq(stats_of(root).chunk_bytes, 8192);
    reapDestroy(&root);
}

static void use_nothing(void *arg) { (void)arg; }

/* A vote for the size stays one where small children have just taken several steps down. */
TEST(a_child_of_the_right_size_changes_nothing, .times = 2, .modes = ORDINARY)
{
    void *child;
    needs(!apart_on, "objects lie apart");
    for (int i = 0; i < 6; i++) child_with(1000);
    for (int i = 0; i < 5; i++) child_with(3);
    reapCreate(&child, &reap);
    ck_assert_uint_eq(stats_of(child).chunk_bytes, 8192);
    reapMalloc(&child, 3000);
    if (_i == 1) reapOnDestroy(&child, use_nothing, NULL);
    reapDestroy(&child);
    ck_assert_uint_eq(child_with(3), 8192);
}

/* Where another thread has the lock of its parent's list, all ways to end a child come one after the other.
 */
TEST(a_child_votes_once, .times = 2, .modes = ORDINARY)
{
    struct reap_list *list = &((struct reap *)reap)->below;
    void *child;
    needs(!apart_on, "objects lie apart");
    reapCreate(&child, &reap);
    uint8_t votes = list->votes, after = reap_region_votes_after(child, votes);
    ck_assert_uint_ne(votes, after);
    if (_i == 1) list->lock = 0U - 1; /* as a thread that a fork has left behind */
    reapDestroy(&child);
    ck_assert_uint_eq(list->votes, after);
}

/* A name that a small first chunk has no room for lies in another chunk, in which the next round begins. */
TEST(a_long_name_outlives_clears_of_a_small_reap, .modes = ORDINARY)
{
    char name[400];
    void *child, *objects[3];
    reapCreate(&child, &reap);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    ck_assert_int_eq(reapSetName(&child, name), 0);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 3; i++) objects[i] = memset(reapMalloc(&child, 64), 'o', 64);
        for (int i = 0; i < round; i++) reapFree(&child, objects[i]);
        assert_valid(child);
        reapFreeAll(&child);
        assert_valid(child);
        ck_assert_str_eq(reapName(&child), name);
    }
    reapDestroy(&child);
}

/* The children of a request begin with what those of the last request came to need. */
TEST(children_learn_from_their_parents_siblings, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    for (int i = 0; i < 3; i++) {
        void *child, *below;
        reapCreate(&child, &reap);
        reapCreate(&below, &child);
        ck_assert_uint_eq(stats_of(below).chunk_bytes, i == 0 ? 1024 : 8192);
        for (int k = 0; k < 20; k++) reapMalloc(&below, 100);
        reapDestroy(&below);
        reapDestroy(&child);
    }
    void *children[2], *below; /* the second one is in a new chunk */
    for (int i = 0; i < 2; i++) reapCreate(&children[i], &reap);
    reapCreate(&below, &children[1]);
    ck_assert_uint_eq(stats_of(below).chunk_bytes, 8192);
}

/* The next child, in the memory of the last one, has neither its name nor room for its functions. */
TEST(a_child_has_nothing_of_the_last_one, .modes = ORDINARY)
{
    for (int i = 0; i < 20; i++) {
        void *child;
        reapCreate(&child, &reap);
        ck_assert_ptr_null(reapName(&child));
        if (i % 2 == 0) {
            reapOnDestroy(&child, use_nothing, NULL);
            reapCancelOnDestroy(&child, use_nothing, NULL);
            ck_assert_int_eq(reapSetName(&child, "name"), 0);
        } else {
            size_t room =
                (size_t)(((const struct reap *)child)->bump_max - ((const struct reap *)child)->bump);
            char *object = memset(reapMalloc(&child, room), 'o', room);
            reapOnDestroy(&child, use_nothing, NULL);
            for (size_t k = 0; k < room; k++) ck_assert_int_eq(object[k], 'o');
        }
        assert_valid(child);
        reapDestroy(&child);
    }
}

/* A fifth of the children is a little too great for the size of the others. If each of these had its way, as
 * many as live at once would begin with the greater size, and most of them would not need it. */
TEST(a_few_great_children_do_not_change_the_size_of_all, .modes = ORDINARY)
{
    enum { LIVE = 50, ROUNDS = 40 };
    needs(!apart_on, "objects lie apart");
    void *children[LIVE];
    unsigned great = 0;
    for (int i = 0; i < LIVE * ROUNDS; i++) {
        void **child = &children[i % LIVE];
        if (i >= LIVE) reapDestroy(child);
        reapCreate(child, &reap);
        if (i > LIVE * ROUNDS / 2) great += ((const struct reap *)*child)->held > REAP_FIRST_SIZE;
        int objects = i % 5 == 4 ? 100 : 80;
        for (int k = 0; k < objects; k++) ck_assert_ptr_nonnull(reapMalloc(child, 80));
    }
    ck_assert_uint_eq(great, 0);
}

/* Children that began before the last step say nothing about it: as many as are alive at once would take the
 * size up to the greatest, and then down to the least. */
TEST(children_that_live_together_learn_one_step, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    void *children[20];
    for (int i = 0; i < 60; i++) {
        void **child = &children[i % 20];
        if (i >= 20) reapDestroy(child);
        reapCreate(child, &reap);
        if (i >= 20) ck_assert_uint_eq(((const struct reap *)*child)->held, 8192);
        for (int k = 0; k < 80; k++) ck_assert_ptr_nonnull(reapMalloc(child, 80));
        ck_assert_uint_eq(((const struct reap *)*child)->held, i >= 20 ? 8192 : 8192 + 1024);
    }
}

/* One chunk of those that went is kept for the next child, and goes with the parent. */
TEST(the_next_child_begins_where_the_last_one_did, .modes = ORDINARY)
{
    void *children[3], *stale, *grandchild;
    size_t before = stats().chunk_bytes, kept = apart_on ? 0 : REAP_SMALL_SIZE;
    for (int i = 0; i < 3; i++) reapCreate(&children[i], &reap);
    stale = children[0];
    for (int i = 0; i < 3; i++) reapDestroy(&children[i]);
    ck_assert_uint_eq(stats().chunk_bytes, before + kept);
    ck_assert_int_eq(reapOf(stale, &grandchild), -1);
    for (int round = 0; round < 3; round++) {
        reapCreate(&children[0], &reap);
        ck_assert(children[0] == stale || apart_on);
        ck_assert_uint_eq(stats().chunk_bytes, before);
        assert_valid(children[0]);
        memset(reapMalloc(&children[0], 5000), 0xff, 5000);
        reapCreate(&grandchild, &children[0]);
        reapDestroy(&grandchild);
        reapDestroy(&children[0]);
        assert_valid(reap);
    }
    ck_assert_uint_eq(stats().chunk_bytes, before + kept);
}

static void *destroy_there(void *root)
{
    reapDestroy(&root);
    return NULL;
}

/* A root's memory is the next root's of this thread, which has nothing of it: no name, no object, and
 * children that begin small. One that did more than to bump goes, and a trim gives back what is kept. */
TEST(the_next_root_begins_where_the_last_one_did, .modes = ORDINARY, .apart = true)
{
    void *root, *child, *last;
    struct hoard_stats before, after;
    (reapCreate)(&root, NULL);
    reapDestroy(&root);
    needs(!apart_on, "objects lie apart"); /* which the first reap finds out */
    for (int round = 0; round < 8; round++) {
        (reapCreate)(&root, NULL);
        last = root;
        ck_assert_ptr_null(reapName(&root));
        ck_assert_uint_eq(stats_of(root).live_objects, 0);
        reapCreate(&child, &root);
        ck_assert_uint_eq(stats_of(child).chunk_bytes, REAP_SMALL_SIZE);
        if (round % 4 == 3) memset(reapMalloc(&child, 20000), 0xff, 20000);
        reapDestroy(&child);
        reapTrim(&root, 0); /* the cached child would send it the long way */
        memset(reapMalloc(&root, 5000), 0xff, 5000);
        ck_assert_int_eq(reapSetName(&root, "root"), 0);
        reapDestroy(&root);
        (reapCreate)(&root, NULL);
        ck_assert_ptr_eq(root, last);
        memset(reapMalloc(&root, 50000), 0xff, 50000 * (round % 2));
        assert_valid(root);
        reapDestroy(&root);
    }
    hoard_stats(&before);
    (reapCreate)(&root, NULL);
    reapDestroy(&root);
    struct reap_list *list = &reap_roots[reap_kept_root - 1].list;
    ck_assert_ptr_eq(list->cached, last);
    hoard_trim(0);
    ck_assert_ptr_null(list->cached);
    (reapCreate)(&root, NULL);
    reapDestroy(&root);
    hoard_stats(&after); /* which gives it back first */
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
}

/* Threads destroy each other's roots, and make more at the same time. */
static void *swap_roots(void *arg)
{
    _Atomic(void *) *places = arg;
    for (uint64_t i = 0, chance = (uintptr_t)&i; i < shorter(200000, 40000); i++) {
        void *root;
        (reapCreate)(&root, NULL);
        ck_assert_uint_eq(((struct reap *)root)->tag, reap_tag(root));
        memset(reapMalloc(&root, 100), 1, 100);
        root = atomic_exchange(&places[random_below(&chance, 8)], root);
        if (root) destroy_there(root);
    }
    return NULL;
}

TEST(threads_pass_roots_on, .modes = ORDINARY, .apart = true)
{
    static _Atomic(void *) places[8];
    in_threads(4, swap_roots, places);
    for (int i = 0; i < 8; i++)
        if (places[i]) destroy_there(places[i]);
}

/* --- handles in memory that goes --- */

static bool are_shared;

static void *new_on_pages(void **parent)
{
    struct reap_options options = {.size = sizeof options, .source = {take_pages, give_pages, NULL}};
    void *on_pages;
    options.flags = are_shared ? REAP_SHARED : 0;
    ck_assert_int_eq(reapCreateWith(&on_pages, parent, &options), 0);
    return on_pages;
}

static void free_in(void *object)
{
    void *owner;
    ck_assert_int_eq(reapOf(object, &owner), 0);
    reapFree(&owner, object);
}

/* Where it stays it is NULL: in a parent, in a reap beside, in another tree, and elsewhere. */
TEST(a_handle_in_a_reap_that_stays, .times = 2)
{
    void *beside, *root, *child, *local;
    are_shared = _i;
    reapCreate(&beside, &reap);
    reapCreate(&root, NULL);
    void **handles[] = {reapMalloc(&reap, 16), reapMalloc(&beside, 50000), reapMalloc(&root, 16), &local};
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        for (int children = 0; children < 2; children++) {
            *handles[i] = new_on_pages(&reap);
            if (children) reapCreate(&child, handles[i]);
            reapMalloc(handles[i], 1000);
            reapDestroy(handles[i]);
            ck_assert_ptr_null(*handles[i]);
        }
    }
    reapDestroy(&root);
}

/* The same with objects apart, and what was freed looked through for what has been written to it. */
TEST(a_handle_apart, .times = 2, .modes = ORDINARY, .apart = true)
{
    static const char *const how[] = {"harden=1", "bypass=1"};
    setenv("REAP_OPTIONS", how[_i], 1);
    for (int where = 0; where < 8; where++) {
        void *top, *child, **handle;
        reapCreate(&top, NULL);
        reapCreate(&child, &top);
        handle = reapMalloc(where & 1 ? &child : &top, where & 2 ? 100000 : 16);
        *handle = top;
        if (where & 4) reapOnDestroy(where & 1 ? &child : &top, free_in, handle);
        reapDestroy(handle);
        apart_check_freed();
    }
}

/* Made in an object of its parent, and cleared through a handle that goes with the clear. */
TEST(a_handle_in_an_object_of_the_parent)
{
    struct request {
        void *handle;
        void *self;
    } *request = reapMalloc(&reap, sizeof *request);
    reapCreate(&request->handle, &reap);
    request->self = reapMalloc(&request->handle, 16);
    *(void **)request->self = request->handle;
    void *handle = request->handle;
    reapFreeAll(request->self);
    ck_assert_uint_eq(stats_of(handle).live_objects, 0);
    reapDestroy(&request->handle);
    ck_assert_ptr_null(request->handle);
}

TEST(destroying_nothing)
{
    void *nothing = NULL;
    reapDestroy(&nothing);
    ck_assert_ptr_null(nothing);
    reapFree(&reap, NULL);
    reapCreate(&nothing, &(void *){NULL});
    ck_assert_ptr_null(reapParent(&nothing));
    reapDestroy(&nothing);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
