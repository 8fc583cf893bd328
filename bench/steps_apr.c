/* SPDX-License-Identifier: Apache-2.0 */
/* steps_apr PRELOAD: how many instructions calls of APR's pools take, and how many of them are atomic
 * read-modify-writes, with what PRELOAD ("" for nothing: APR's own) brings. A line a call:
 *
 *     INSTRUCTIONS ATOMICS CALL
 *
 * The calls are in functions, as in steps_reap.c. Each number is the least of several calls, after many
 * others. How they are counted: stepping.h. Status 77 where that cannot be done.
 */
#include "stepping.h"

#ifdef STEPPING

#include <apr_general.h>
#include <apr_pools.h>

enum { WARM = 600, TRIES = 6 };

static apr_pool_t *pool;
static void *object;

COUNTED void palloc_64(void) { object = apr_palloc(pool, 64); }
COUNTED void palloc_1000(void) { object = apr_palloc(pool, 1000); }
COUNTED void clear(void) { apr_pool_clear(pool); }

COUNTED void child_life(void)
{
    apr_pool_t *below;
    apr_pool_create(&below, pool);
    object = apr_palloc(below, 64);
    apr_pool_destroy(below);
}

static void nothing(void) {}
static void three_objects(void)
{
    for (int i = 0; i < 3; i++) palloc_64();
}

static const struct counted {
    const char *name;
    void (*before)(void); /* before each call */
    void (*call)(void);
} counted[] = {
    {"apr_palloc 64", nothing, palloc_64},
    {"apr_palloc 1000", nothing, palloc_1000},
    {"apr_pool_create, apr_palloc 64, apr_pool_destroy", nothing, child_life},
    {"apr_pool_clear, three objects", three_objects, clear},
};
enum { COUNTED_CALLS = sizeof counted / sizeof *counted };

static int child(void)
{
    stepping_begin_child();
    measure_need(apr_initialize() == APR_SUCCESS, "no APR");
    for (int c = 0; c < COUNTED_CALLS; c++) {
        measure_need(apr_pool_create(&pool, NULL) == APR_SUCCESS, "no pool");
        for (int i = 0; i < WARM + TRIES; i++) {
            counted[c].before();
            if (i >= WARM) stepping_stop((uintptr_t)counted[c].call, 0);
            counted[c].call();
        }
        apr_pool_destroy(pool);
    }
    return 0;
}

static int parent(void)
{
    for (int c = 0; c < COUNTED_CALLS; c++) {
        struct stepping_cost least = {0, 0};
        for (int i = 0; i < TRIES; i++) stepping_count(stepping_next().rax, &least);
        printf("%u %u %s\n", least.instructions, least.atomics, counted[c].name);
    }
    stepping_end();
    return 0;
}

int main(int argc, char **argv)
{
    measure_need(argc == 2, "usage: steps_apr PRELOAD");
    if (strcmp(argv[1], "child") == 0) return child();
    int status = stepping_start(argv, argv[1]);
    return status ? status : parent();
}

#else

int main(void) { return stepping_unsupported("steps_apr"); }

#endif
