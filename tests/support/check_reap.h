/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap.h: what the Check programs for reaps share. */
#ifndef CHECK_REAP_H
#define CHECK_REAP_H

#include "check_backend.h"

#include <pthread.h>
#include <stdlib.h>

#include "reap.h"
#include "reap/reap_shared.h"
#include "reap/validate.h"

/* The reap itself, also of a shared one. */
static inline const struct reap *reap_behind(void *handle)
{
    return reap_is_plain(handle) ? handle : ((struct reap_face *)handle)->reap;
}

#define assert_valid(handle)                                                                                 \
    do {                                                                                                     \
        const char *why_;                                                                                    \
        ck_assert_msg(reap_is_valid(reap_behind(handle), &why_), "does not hold: %s", why_);                 \
    } while (0)

static inline struct reap_stats stats_of(void *handle)
{
    struct reap_stats stats;
    assert_valid(handle);
    ck_assert_int_eq(reapStats(&handle, &stats), 0);
    return stats;
}

/* A shared reap. Called in children of forks too, in which Check's own lock may be held for ever. */
static inline void *new_shared(void **parent, size_t limit)
{
    void *shared;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED, .limit = limit};
    if (reapCreateWith(&shared, parent, &options) != 0) abort();
    return shared;
}

/* What reapCreate makes in a test: an ordinary reap; a shared one; or a shared one whose objects come from
 * several shards in turn, as if many threads made them. */
enum reap_mode { MODE_ORDINARY, MODE_SHARED, MODE_SHARDS, MODES };
static enum reap_mode reap_mode;

static inline void be_shared(void) { reap_mode = MODE_SHARED; }
static inline void be_in_shards(void)
{
    use_path(PATHS - 1, "heaps=roundrobin");
    reap_mode = MODE_SHARDS;
}

static inline void create_in_mode(void **handle, void **parent)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    if (reap_mode == MODE_ORDINARY)
        reapCreate(handle, parent);
    else
        reapCreateWith(handle, parent, &options);
}
#define reapCreate(handle, parent) create_in_mode(handle, parent)

/* A case whose tests run in a mode. */
static inline TCase *case_of_mode(const char *name, enum reap_mode mode)
{
    static void (*const begins[MODES])(void) = {NULL, be_shared, be_in_shards};
    TCase *tests = tcase_create(name);
    if (begins[mode]) tcase_add_checked_fixture(tests, begins[mode], NULL);
    return tests;
}

/* Several threads at once, 16 at most, to their end. */
static inline void in_threads(int count, void *(*body)(void *), void *arg)
{
    pthread_t threads[16];
    for (int i = 0; i < count; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, body, arg), 0);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* Runs the tests of a program that has one case; the exit status. */
static inline int run(const char *name, TCase *tests) { return run_cases(name, tests, (TCase *)NULL); }

#endif
