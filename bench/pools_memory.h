/* SPDX-License-Identifier: Apache-2.0 */
/* pools_memory.h: the workloads, compiled for each pool (pools.h), that look at memory and not at time.
 *
 *     idle N    N pools with three objects each, which nobody uses
 *     hold      a pool with 64 MB of objects of 16 to 128 bytes
 *     fall      200,000 live objects and random ones replaced; then one freed for each that is replaced,
 *               until a tenth is left; then that is replaced twelve times over within a second, in which the
 *               program has other pools too, as request
 *
 * They tell, in KiB: grown, by how much what is resident grew; asked, the sum of the sizes, each rounded up
 * to 16. fall tells full, fell and later in the place of grown.
 *
 * The struct pool counts as the pool's: it is memory that the user has for it.
 */
#ifndef POOLS_MEMORY_H
#define POOLS_MEMORY_H

#include "pools_frees.h"
#include "pools_regions.h"

#include <unistd.h>

/* clang-format off */
enum {
    IDLE_OBJECTS = 3, /* of a pool */
    HOLD = 64 * 1000 * 1000,
    FALL = 200000, FALL_LEFT = FALL / 10, FALL_SLICES = 100, FALL_SLICE = 12 * FALL_LEFT / FALL_SLICES,
    FALL_PAUSE = 10 * 1000
};
/* clang-format on */

static struct {
    const char *name;
    long value;
} told[8];

static void tell(const char *name, long value)
{
    size_t i = 0;
    while (told[i].name) i++;
    told[i].name = name;
    told[i].value = value;
}

static void print_told(void)
{
    for (size_t i = 0; told[i].name; i++) measure_print_named(told[i].name, told[i].value);
}

static inline size_t rounded(size_t size) { return (size + 15) / 16 * 16; }

/* What the first pool sets up is not a pool's. */
static void warm_up(void)
{
    struct used used[IDLE_OBJECTS];
    struct pool pool;
    unsigned place = 0;
    pool_child(&pool, &root, IDLE_OBJECTS);
    get_objects(&pool, IDLE_OBJECTS, &place, used);
    pool_end(&pool);
}

static uint64_t idle(void)
{
    struct pool *pools = mmap(NULL, (size_t)number * sizeof *pools, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct used used[IDLE_OBJECTS];
    unsigned place = 0;
    measure_need(pools != MAP_FAILED, "no memory");
    warm_up();
    long before = measure_resident();
    for (int i = 0; i < number; i++) {
        pool_child(&pools[i], &root, IDLE_OBJECTS);
        get_objects(&pools[i], IDLE_OBJECTS, &place, used);
    }
    tell("grown", measure_resident() - before);
    return (uint64_t)number;
}

static uint64_t hold(void)
{
    struct used used;
    struct pool pool;
    size_t bytes = 0;
    uint64_t objects = 0;
    warm_up();
    long before = measure_resident();
    pool_child(&pool, &root, HOLD / ((SIZE_LEAST + SIZE_MOST) / 2 + 8));
    for (; bytes < HOLD; objects++) {
        size_t size = sizes[objects % SIZES];
        use_new(&used, pool_get(&pool, size), size);
        bytes += rounded(size);
    }
    tell("grown", measure_resident() - before);
    tell("asked", (long)(bytes / 1024));
    return objects;
}

#if defined(POOL_FREES) && !defined(POOL_ALONE)
static void replace_some(struct pool *pool, struct used *objects, int n, int times, uint32_t *state)
{
    for (int i = 0; i < times; i++) {
        uint32_t drawn = measure_random(state);
        struct used *one = &objects[drawn % (uint32_t)n];
        put_one(pool, one);
        get_one(pool, one, sizes[drawn / 64 % SIZES]);
    }
}

static uint64_t fall(void)
{
    static struct used objects[FALL];
    struct pool pool;
    uint32_t state = 1;
    warm_up();
    memset(objects, 1, sizeof objects);
    long before = measure_resident();
    pool_child(&pool, &root, 0);
    for (int i = 0; i < FALL; i++) get_one(&pool, &objects[i], sizes[i % SIZES]);
    replace_some(&pool, objects, FALL, FALL, &state);
    tell("full", measure_resident() - before);
    for (int left = FALL; left > FALL_LEFT; left--) {
        replace_some(&pool, objects, left, 1, &state);
        struct used *one = &objects[measure_random(&state) % (uint32_t)left];
        put_one(&pool, one);
        *one = objects[left - 1];
    }
    tell("fell", measure_resident() - before);
    for (int i = 0; i < FALL_SLICES; i++) {
        replace_some(&pool, objects, FALL_LEFT, FALL_SLICE, &state);
        request_below(&root, 1);
        usleep(FALL_PAUSE);
    }
    tell("later", measure_resident() - before);
    return 2 * FALL - FALL_LEFT;
}
#endif

#endif
