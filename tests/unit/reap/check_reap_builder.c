/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_builder.c: objects that grow at their end, beside a plain array that has the same bytes. */
#include "support/check_reap.h"

#include <locale.h>
#include <wchar.h>

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

/* What a builder is compared with. */
static char model[1 << 20];
static size_t model_length;

static void assert_same(const reap_builder *builder)
{
    ck_assert_uint_eq(builder->length, model_length);
    ck_assert_int_eq(memcmp(builder->data, model, model_length), 0);
    ck_assert_int_eq(builder->data[model_length], 0);
    ck_assert_uint_lt(builder->length, builder->room);
    ck_assert_uint_ge(reapUsableSize(builder->data), builder->room);
}

static void model_append(const char *bytes, size_t n)
{
    memcpy(model + model_length, bytes, n);
    model_length += n;
}

static void append_randomly(void *reap, reap_builder *builder, uint64_t *chance)
{
    char piece[700];
    size_t n = random_below(chance, random_below(chance, 8) ? 40 : sizeof piece);
    for (size_t i = 0; i < n; i++) piece[i] = (char)('a' + random_below(chance, 26));
    piece[n] = '\0';
    switch (random_below(chance, 4)) {
    case 0: ck_assert_int_eq(reapAppend(reap, builder, piece, n), 0); break;
    case 1: ck_assert_int_eq(reapAppendString(reap, builder, piece), 0); break;
    case 2: ck_assert_int_eq(reapAppendf(reap, builder, "%s", piece), 0); break;
    default: memcpy(reapExtend(reap, builder, n), piece, n);
    }
    model_append(piece, n);
}

TEST(bytes_as_in_an_array, .times = KINDS)
{
    uint64_t chance = random_seed();
    for (int round = 0; round < (reap_instrumented ? 2 : 20); round++) {
        void *reap = make(_i);
        reap_builder builder = {0};
        model_length = 0;
        for (int i = 0; i < 500; i++) {
            append_randomly(reap, &builder, &chance);
            if (random_below(&chance, 4) == 0) reapMalloc(&reap, random_below(&chance, 100));
            if (i % 50 == 0) assert_same(&builder);
            if (random_below(&chance, 100) > 0) continue;
            model_length = builder.length = builder.length / 2;
            ck_assert_int_eq(reapAppendString(&reap, &builder, ""), 0);
        }
        assert_valid(reap);
        assert_same(&builder);
        size_t before = stats_of(reap).live_objects;
        char *data = reapFinish(&reap, &builder);
        ck_assert_int_eq(memcmp(data, model, model_length), 0);
        ck_assert_int_eq(data[model_length], 0);
        ck_assert_uint_eq(reapUsableSize(data), (model_length + 1 + 15) / 16 * 16);
        ck_assert_uint_eq(stats_of(reap).live_objects, before);
        ck_assert(!builder.data && !builder.length && !builder.room);
        reapDestroy(&reap);
    }
}

/* The last object of a chunk stays where it is. */
TEST(the_last_object_grows_in_its_place, .times = KINDS)
{
    void *reap = make(_i);
    reap_builder builder = {0};
    ck_assert_int_eq(reapAppendString(&reap, &builder, "x"), 0);
    char *data = builder.data;
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(reapAppendf(&reap, &builder, "%d", i % 10), 0);
    if (!reap_instrumented) ck_assert_ptr_eq(builder.data, data);
    ck_assert_uint_eq(builder.length, 1001);
    ck_assert_uint_eq(stats_of(reap).live_objects, 1);
    data = reapFinish(&reap, &builder);
    char *next = reapMalloc(&reap, 10);
    if (!reap_instrumented && reap_mode != MODE_PARTS) ck_assert_ptr_eq(next, data + 1008);
    reapDestroy(&reap);
}

/* Another one moves as often as its room doubles. */
TEST(others_move_seldom, .times = KINDS)
{
    void *reap = make(_i);
    reap_builder builder = {0};
    char *last = NULL;
    int moves = 0;
    for (int i = 0; i < 30000; i++) {
        ck_assert_int_eq(reapAppend(&reap, &builder, "b", 1), 0);
        if (builder.data != last) moves++;
        last = builder.data;
        ck_assert_ptr_nonnull(reapMalloc(&reap, 16));
    }
    ck_assert_int_le(moves, 11); /* 64 bytes to 32 KiB, and the first */
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

TEST(its_own_bytes, .times = KINDS)
{
    void *reap = make(_i);
    reap_builder builder = {0};
    ck_assert_int_eq(reapAppendString(&reap, &builder, "ab"), 0);
    for (int i = 0; i < 12; i++) {
        ck_assert_ptr_nonnull(reapMalloc(&reap, 100)); /* so that it moves */
        if (i % 2)
            ck_assert_int_eq(reapAppendString(&reap, &builder, builder.data), 0);
        else
            ck_assert_int_eq(reapAppend(&reap, &builder, builder.data, builder.length), 0);
    }
    ck_assert_uint_eq(builder.length, 2 << 12);
    for (size_t i = 0; i < builder.length; i += 2) ck_assert_int_eq(memcmp(builder.data + i, "ab", 2), 0);
    reapDestroy(&reap);
}

TEST(formats, .times = KINDS)
{
    void *reap = make(_i);
    reap_builder builder = {0};
    char expected[3000];
    for (int width = 250; width < 262; width++) {
        builder.length = 0;
        ck_assert_int_eq(reapAppendf(&reap, &builder, "%*d|%s", width, 7, "end"), 0);
        snprintf(expected, sizeof expected, "%*d|%s", width, 7, "end");
        ck_assert_str_eq(builder.data, expected);
        ck_assert_uint_eq(builder.length, strlen(expected));
    }
    ck_assert_int_eq(reapAppendf(&reap, &builder, "%2000d", 7), 0);
    size_t length = builder.length;
    setlocale(LC_ALL, "C");
    ck_assert_int_eq(reapAppendf(&reap, &builder, "%ls", L"\x20ac"), -1);
    ck_assert_int_eq(errno, EILSEQ);
    ck_assert_uint_eq(builder.length, length);
    ck_assert_uint_eq(strlen(builder.data), length);
    reapDestroy(&reap);
}

/* --- no memory --------------------------------------------------------------------------------- */

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

TEST(sizes_beyond_all_memory, .times = KINDS)
{
    void *reap = make(_i);
    reap_builder builder = {0};
    for (int round = 0; round < 2; round++) {
        reap_builder before = builder;
        size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, PTRDIFF_MAX};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            errno = 0;
            ck_assert_ptr_null(reapExtend(&reap, &builder, OPAQUE(sizes[i])));
            ck_assert_int_eq(errno, ENOMEM);
            ck_assert_int_eq(memcmp(&before, &builder, sizeof before), 0);
        }
        ck_assert_int_eq(reapAppendString(&reap, &builder, "text"), 0);
    }
    reapDestroy(&reap);
}

TEST(a_buffer_that_is_full)
{
    static char buffer[8192];
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    void *reap;
    ck_assert_int_eq(reapCreateWith(&reap, NULL, &options), 0);
    reap_builder builder = {0};
    size_t length = 0;
    while (reapAppend(&reap, &builder, "f", 1) == 0) length++;
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_ge(length, 4500); /* in its place, to the end */
    ck_assert_uint_eq(builder.length, length);
    ck_assert_uint_eq(strspn(builder.data, "f"), length);
    reapDestroy(&reap);
}

/* --- marks --------------------------------------------------------------------------------------- */

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
    ck_assert_int_eq(reapAppendf(&reap, &older, "%100d", 1), 0); /* moves, and is young now */
    ck_assert_ptr_ne(older.data, data);
    reapRewind(&reap, &mark);
    ck_assert_uint_eq(stats_of(reap).live_objects, 0);
    reapUnmark(&reap, &mark);
    reapDestroy(&reap);
}

/* Its kinds of reaps have shared ones among them: the mode says where their objects come from. */

int main(void) { return run_tests((struct suite){.modes = ORDINARY | IN_PARTS}); }
