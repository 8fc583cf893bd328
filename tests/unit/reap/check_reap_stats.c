/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_stats.c: what a reap holds: walks, numbers, reports. */

#include "support/reap_fixture.h"

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

TEST(a_walk_sees_each_object_once)
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
    ck_assert_uint_le(stats().chunks, reap_mode == MODE_PARTS ? 4 : 1); /* the first ones */
    ck_assert_int_eq(reapWalk(&reap, free_each, &seen), 0);
    ck_assert_int_eq(seen, 500);
}

TEST(stats_add_up, .modes = ORDINARY)
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
    ck_assert_uint_le(stats().chunk_bytes, 8192 + (apart_on ? 16 + 32 : 0));
    ck_assert_uint_eq(stats().peak_chunk_bytes, held);
    ck_assert_uint_eq(reapPeakBytes(&reap), held);
}

/* The child that a parent keeps counts with its own bytes, though the next one would have others. */
TEST(a_cached_child_has_its_size, .modes = ORDINARY)
{
    enum { CHILDREN = 12 };
    const struct reap_list *list = &((const struct reap *)reap)->below;
    void *children[CHILDREN];
    needs(!apart_on, "all objects are watched");
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < CHILDREN; i++) {
            reapCreate(&children[i], &reap);
            for (int k = 0; k < (round < 6 ? 40 : 1); k++) reapMalloc(&children[i], 400);
        }
        for (int i = 0; i < CHILDREN; i++) {
            reapDestroy(&children[i]);
            size_t cached = list->cached ? reap_first_chunk(list->cached)->size : 0;
            ck_assert_uint_eq(stats().chunk_bytes, 8192 + cached);
            if (i == CHILDREN - 1) ck_assert_uint_eq(reapHeldBytes(&reap), 8192 + cached);
        }
    }
}

TEST(the_report_is_a_tree, .modes = ORDINARY)
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
    if (!apart_on) ck_assert_ptr_nonnull(strstr(text, ": 1 objects, 112 bytes, 1 chunks, 1024 held"));
    ck_assert_ptr_nonnull(strstr(text, "\n    0x"));
    ck_assert_ptr_null(strstr(text, "limit"));
    reapSetLimit(&child, 5000);
    reapReport(&child, out);
    fflush(out);
    ck_assert_ptr_nonnull(strstr(text, " at most, limit 5000\n  0x"));
    ck_assert_int_eq(reapSetLimit(&child, 0), 0);
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

/* A line says how deep it is in so many columns, up to a point. */
TEST(the_report_of_a_deep_tree_is_not_wide)
{
    enum { DEPTH = 5000 };
    char *text = NULL;
    size_t size, lines = 0;
    void *parent = reap, *child = NULL;
    for (int i = 0; i < DEPTH; i++, parent = child) reapCreate(&child, &parent);
    FILE *out = open_memstream(&text, &size);
    reapReport(&reap, out);
    fclose(out);
    ck_assert_uint_lt(size, DEPTH * (size_t)300);
    for (const char *line = text; (line = strchr(line, '\n')); line++) lines++;
    ck_assert_uint_eq(lines, DEPTH + 1);
    ck_assert_ptr_nonnull(strstr(text, "  [5000] 0x"));
    ck_assert_ptr_null(strstr(text, "[40]"));
    free(text);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
