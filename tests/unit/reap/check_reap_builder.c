/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_builder.c: where objects that grow at their end lie, and what refuses them. (tests/fuzz has a
 * model of them.) */
#include "support/check_reap.h"

#include "support/expect.h"

enum { ROOT, SHARED, LIMITED, FIXED, KINDS };

static void *make(int kind)
{
    static char buffer[4 << 20];
    void *reap;
    struct reap_options options = {.size = sizeof options};
    options.flags = kind == SHARED ? REAP_SHARED : 0;
    options.limit = kind == LIMITED ? 4 << 20 : 0;
    options.buffer = kind == FIXED ? buffer : NULL;
    options.buffer_size = kind == FIXED ? sizeof buffer : 0;
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
    return reap;
}

/* The last object of a chunk stays where it is. */
TEST(the_last_object_grows_in_its_place, .times = KINDS)
{
    void *reap = make(_i);
    reap_builder builder = {0};
    ck_assert_int_eq(reapAppendString(&reap, &builder, "x"), 0);
    char *data = builder.data;
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(reapAppendf(&reap, &builder, "%d", i % 10), 0);
    if (!apart_on) ck_assert_ptr_eq(builder.data, data);
    ck_assert_uint_eq(builder.length, 1001);
    ck_assert_uint_eq(stats_of(reap).live_objects, 1);
    data = reapFinish(&reap, &builder);
    char *next = reapMalloc(&reap, 10);
    if (!apart_on && reap_mode != MODE_PARTS) ck_assert_ptr_eq(next, data + 1008);
    reapDestroy(&reap);
}

TEST(nothing_appended, .times = KINDS)
{
    void *reap = make(_i);
    reap_builder builder = {0};
    ck_assert_str_eq(reapFinish(&reap, &builder), "");
    ck_assert_int_eq(reapAppend(&reap, &builder, NULL, 0), 0);
    ck_assert_str_eq(builder.data, "");
    ck_assert_ptr_eq(reapExtend(&reap, &builder, 0), builder.data);
    ck_assert_int_eq(reapAppendf(&reap, &builder, "%s", ""), 0);
    ck_assert_uint_eq(builder.length, 0);
    ck_assert_str_eq(reapFinish(&reap, &builder), "");
    reapDestroy(&reap);
}

static int asked;
static size_t asked_size;
static void met(void **reap, size_t size, void *arg)
{
    asked += *reap == arg;
    asked_size = size;
}

/* Each byte of a limit can be had, nobody is asked before, and a refusal changes nothing. */
TEST(up_to_the_limit, .times = 2)
{
    enum { LIMIT = 5008 };
    void *reap = make(_i ? SHARED : ROOT);
    reap_builder builder = {0};
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    asked = 0;
    reapOnLimit(&reap, met, reap);
    for (int i = 0; i < LIMIT - 1; i++) {
        ck_assert_int_eq(reapAppend(&reap, &builder, "l", 1), 0);
        ck_assert_int_eq(asked, 0);
    }
    char *data = builder.data;
    ck_assert_int_eq(reapAppend(&reap, &builder, "l", 1), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(asked, 1);
    ck_assert_uint_eq(asked_size, LIMIT + 1);
    ck_assert_int_eq(reapAppendf(&reap, &builder, "%300d", 1), -1);
    ck_assert_ptr_null(reapExtend(&reap, &builder, 1));
    ck_assert_ptr_eq(builder.data, data);
    ck_assert_uint_eq(builder.length, LIMIT - 1);
    ck_assert_uint_eq(strspn(data, "l"), LIMIT - 1);
    data = reapFinish(&reap, &builder);
    ck_assert_uint_eq(strspn(data, "l"), LIMIT - 1);
    ck_assert_ptr_null(reapFinish(&reap, &builder));
    reapDestroy(&reap);
}

TEST(a_buffer_that_is_full)
{
    static char buffer[8192];
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    void *reap;
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
    needs(!apart_on, "objects lie apart"); /* not in the buffer */
    reap_builder builder = {0};
    size_t length = 0;
    while (reapAppend(&reap, &builder, "f", 1) == 0) length++;
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_ge(length, 4500); /* in its place, to the end */
    ck_assert_uint_eq(builder.length, length);
    ck_assert_uint_eq(strspn(builder.data, "f"), length);
    reapDestroy(&reap);
}

TEST(across_a_mark, .times = KINDS)
{
    void *reap = make(_i);
    reap_mark mark;
    reap_builder older = {0}, younger = {0};
    ck_assert_int_eq(reapAppendString(&reap, &older, "older"), 0);
    char *data = older.data;
    reapMark(&reap, &mark);
    ck_assert_int_eq(reapAppendString(&reap, &older, " still"), 0); /* it has the room */
    ck_assert_ptr_eq(older.data, data);
    for (int i = 0; i < 3000; i++) ck_assert_int_eq(reapAppend(&reap, &younger, "y", 1), 0);
    reapRewind(&reap, &mark);
    ck_assert_str_eq(older.data, "older still");
    assert_valid(reap);
    ck_assert_int_eq(reapAppendf(&reap, &older, "%300d", 1), 0); /* moves, and is young now */
    ck_assert_ptr_ne(older.data, data);
    reapRewind(&reap, &mark);
    ck_assert_uint_eq(stats_of(reap).live_objects, 0);
    reapUnmark(&reap, &mark);
    reapDestroy(&reap);
}

int main(void) { return run_tests((struct suite){.modes = ORDINARY | IN_PARTS}); }
