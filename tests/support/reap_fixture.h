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
}

static struct reap_stats stats(void)
{
    struct reap_stats stats;
    ck_assert_int_eq(reapStats(&reap, &stats), 0);
    return stats;
}

/* Where a reap's memory comes from: as the mode has it; functions of the program's; a buffer. */
enum { FROM_MODE, FROM_SOURCE, FROM_BUFFER, FROMS };
static char reap_buffer[1024 * 1024];

static void *take_chunk(size_t size, void *arg) { return (void)arg, aligned_alloc(4096, size); }
static void give_chunk(void *chunk, size_t size, void *arg) { (void)size, (void)arg, free(chunk); }

static inline void *reap_from(int from)
{
    void *made;
    struct reap_options options = {.size = sizeof options, .flags = flags_of_mode()};
    if (from == FROM_BUFFER) options.buffer = reap_buffer, options.buffer_size = sizeof reap_buffer;
    if (from == FROM_SOURCE) options.source.take = take_chunk, options.source.give = give_chunk;
    ck_assert_int_eq(reapCreateWith(&made, NULL, &options), 0);
    return made;
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
