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

static void pool_begin(int kind)
{
    (void)kind;
    measure_need(apr_initialize() == APR_SUCCESS && apr_pool_create(&pool, NULL) == APR_SUCCESS, "no pool");
}

static void pool_end(void) { apr_pool_destroy(pool); }

static const struct stepping_call calls[] = {
    {"apr_palloc 64", nothing, nothing, palloc_64},
    {"apr_palloc 1000", nothing, nothing, palloc_1000},
    {"apr_pool_create, apr_palloc 64, apr_pool_destroy", nothing, nothing, child_life},
    {"apr_pool_clear, three objects", nothing, three_objects, clear},
};

int main(int argc, char **argv)
{
    static const char *const kinds[] = {""};
    measure_need(argc == 2, "usage: steps_apr PRELOAD");
    return stepping_run(
        argv, argv[1],
        &(struct stepping_calls){calls, sizeof calls / sizeof *calls, 1, kinds, pool_begin, pool_end});
}

#else

int main(void) { return stepping_unsupported("steps_apr"); }

#endif
