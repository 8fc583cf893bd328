/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h: what workloads on regions share, which are written once for all of them: pool_NAME WORKLOAD
 * [NUMBER].
 *
 * A template: a program pool_NAME.c says what a pool is and how its calls are made, then includes
 * pools_run.h, which has main and includes the workloads; each of these includes this and what it uses, and
 * none the one that includes it. The calls are inlined into the workloads as a user's program would have
 * them: a call into the library each, or a macro where the library's interface is one. (A program each,
 * because linking mimalloc also replaces malloc.)
 *
 * It defines: struct pool; pool_begin(root); pool_child(child, parent, objects), objects the number
 * that it will have, about, for a pool that wants to be told, and 0 for one that frees some;
 * pool_get(pool, size); pool_clear(pool); pool_end(pool). And, as far as it has them:
 *
 *     pool_many(many)                 a macro: whether many children will be alive at once
 *     pool_of_thread(child, root)     a macro: the pool of a new thread, in that thread, below the root if
 *                                     it can be; without, pool_child serves
 *     POOL_ALONE                      a child that is not of many is the only one
 *     POOL_FEW                        it cannot have thousands of children in a time that one waits for
 *     POOL_FREES                      pool_put(pool, object, size) frees one object, which
 *                                     pool_resize(pool, object, old size, size) resizes
 *     POOL_FREES_ELSEWHERE            another thread may free one: pool_send(pool, object) for the pool's
 *                                     thread, pool_put_elsewhere(pool, object) for the other
 *     POOL_SHARES                     several threads may use one: pool_shared(child, parent), and
 *                                     pool_get_shared(pool, size)
 *     POOL_PASSES                     a thread allocates in one and another frees: pool_passed(child,
 *                                     parent), pool_get_passed(pool, size), pool_put_passed(pool, object)
 *     POOL_TOLD                       it has room for the objects that it was told of, and for no more
 *     POOL_ONCE                       it looks at each access: programs do a fortieth of their work
 *     POOL_STACKS                     objects younger than a struct mark end together: pool_mark(pool, mark),
 *                                     and pool_release(pool, mark), which the mark does not outlive. The last
 *                                     object may change: pool_resize_last(pool, object, old size, size) and
 *                                     pool_put_last(pool, object)
 *     POOL_GROWS                      struct growing, which zeros begin: pool_grow(pool, growing, byte), and
 *                                     pool_grown(pool, growing), the object
 *     POOL_BUILDS                     struct builder, zeros at first: pool_append(pool, builder, bytes, n),
 *                                     and pool_built(pool, builder), the object
 *     POOL_LIMITS                     pool_limited(child, parent, bytes): a child that refuses more
 *     POOL_HELD                       pool_held(pool): the bytes that it and its children have taken
 *     POOL_PLAIN                      the program itself frees some objects, each: pool_new(pool, size),
 *                                     pool_delete(pool, object, size). What has POOL_FREES has them
 *
 * Workloads of regions are in pools_regions.h, requests in pools_request.h, those that free single objects in
 * pools_frees.h, that look at memory in pools_memory.h, that do what a real program did in pools_trace.h, and
 * programs that had an allocator of their own in pools_gcc.h, pools_lcc.h, pools_parser.h and pools_boxed.h.
 * What knows of no pool is compiled once: pools_source.c, which the compilers read, and traces.c.
 *
 * Objects are written, and read before they die (use.h). What is alive at once is 1 KB to 800 KB: within a
 * second-level cache of 1 MB. After the argument `out` it is about 16 MB, and after `short` programs, and
 * traces, run for a moment. An operation is one object.
 */
#ifndef POOLS_H
#define POOLS_H

#include "measure.h"
#include "use.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* clang-format off */
enum {
    SIZES = 1024, SIZE_LEAST = 16, SIZE_MOST = 128, THREADS_MAX = 64,
    OUT_OBJECTS = 220000 /* of these sizes: 16 MB */
};
/* clang-format on */

#ifndef pool_many
#define pool_many(many) ((void)(many))
#endif
#ifndef pool_of_thread
#define pool_of_thread(child, root) pool_child(child, root, 0)
#endif

static size_t sizes[SIZES];
static struct pool root;
static int number = 1, number_2; /* the arguments */
static bool out;                 /* of the cache */
static bool brief;

/* How often a program does its work. */
static int times(int usual, int in_short)
{
#ifdef POOL_ONCE
    usual /= 40;
#endif
    return brief ? in_short : usual;
}
static _Atomic uint64_t sum; /* of what all threads have read */

static uint64_t started, started_cpu;

/* What a workload did before is not of the work. */
static void restart_clocks(void)
{
    started_cpu = measure_cpu();
    started = measure_now();
}

static void draw_sizes(void)
{
    uint32_t state = 12345;
    for (int i = 0; i < SIZES; i++)
        sizes[i] = SIZE_LEAST + measure_random(&state) % (SIZE_MOST - SIZE_LEAST + 1);
}

/* An object that will be read. */
struct used {
    char *object;
    size_t size;
};

static inline void use_new(struct used *used, void *object, size_t size)
{
    measure_need(object != NULL, "no memory");
    *used = (struct used){object, size};
    use_write(object, size);
}

/* n objects, from a place among the sizes that moves on. */
static inline void get_objects(struct pool *pool, int n, unsigned *place, struct used *objects)
{
    for (int i = 0; i < n; i++) {
        size_t size = sizes[(*place)++ % SIZES];
        use_new(&objects[i], pool_get(pool, size), size);
    }
}

static inline void read_objects(const struct used *objects, int n)
{
    for (int i = 0; i < n; i++) use_read(objects[i].object, objects[i].size);
}

static void add_sum(void)
{
    atomic_fetch_add(&sum, use_sum);
    use_sum = 0;
}

static cpu_set_t cpus; /* that the process may use */

/* The calling thread stays on the n-th of them. Two that wait for each other and are now on one CPU, in turn,
 * and now on two differ by a factor of ten. */
static inline void stay_on_cpu(int n)
{
    cpu_set_t one;
    int cpu = -1;
    for (int left = n % CPU_COUNT(&cpus); left >= 0; left -= CPU_ISSET(cpu, &cpus) != 0) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    measure_need(sched_setaffinity(0, sizeof one, &one) == 0, "not on a CPU");
}

static void start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    measure_need(pthread_create(thread, NULL, run, argument) == 0, "no thread");
}

#ifdef POOL_FREES
#define POOL_PLAIN
static inline void *pool_new(struct pool *pool, size_t size) { return pool_get(pool, size); }
static inline void pool_delete(struct pool *pool, void *object, size_t size) { pool_put(pool, object, size); }
#endif

#endif
