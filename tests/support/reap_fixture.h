/* SPDX-License-Identifier: Apache-2.0 */
/* reap_fixture.h: a reap for each test, checked when the test is over. */
#ifndef REAP_FIXTURE_H
#define REAP_FIXTURE_H

#include "check_reap.h"
#include "region/reap_chunk.h"

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
    for (size_t i = 0; i < REAP_FREELISTS; i++) ck_assert_ptr_null(reap_no_tables.freelists[i]);
}

static struct reap_stats stats(void)
{
    struct reap_stats stats;
    ck_assert_int_eq(reapStats(&reap, &stats), 0);
    return stats;
}

/* A reap with these options. */
#define reap_with(parent, ...)                                                                               \
    made_with(parent, (struct reap_options){.size = sizeof(struct reap_options), __VA_ARGS__})

static inline void *made_with(void **parent, struct reap_options options)
{
    void *made;
    ck_assert_int_eq(reapCreateWith(&made, parent, &options), 0);
    return made;
}

/* Where a reap's memory comes from: as the mode has it; functions of the program's; a buffer. */
enum { FROM_MODE, FROM_SOURCE, FROM_BUFFER, FROMS };
static char reap_buffer[1024 * 1024];

static void *take_chunk(size_t size, void *arg) { return (void)arg, aligned_alloc(4096, size); }
static void give_chunk(void *chunk, size_t size, void *arg) { (void)size, (void)arg, free(chunk); }

static inline void *reap_from(int from)
{
    if (from == FROM_BUFFER)
        return reap_with(NULL, .flags = flags_of_mode(), .buffer = reap_buffer,
                         .buffer_size = sizeof reap_buffer);
    if (from == FROM_SOURCE)
        return reap_with(NULL, .flags = flags_of_mode(), .source = {take_chunk, give_chunk, NULL});
    return reap_with(NULL, .flags = flags_of_mode());
}

/* Holds that it is noticed when a statement breaks the reap, until another one mends it. */
#define BREAKS(statement, back)                                                                              \
    do {                                                                                                     \
        const char *why = NULL;                                                                              \
        statement;                                                                                           \
        ck_assert_msg(!reap_is_valid(reap, &why), "not noticed: %s", #statement);                            \
        ck_assert_ptr_nonnull(why);                                                                          \
        back;                                                                                                \
        assert_valid(reap);                                                                                  \
    } while (0)

#endif
