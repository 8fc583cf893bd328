/* SPDX-License-Identifier: Apache-2.0 */
/* pools_frees.h: the workloads, compiled for each pool (pools.h), that free and resize single objects.
 *
 *     churn     10,000 live objects, a random one replaced each time
 *     phases    4000 objects of one size, then nine in ten of those alive are freed in random
 *               order, then the next size, and so on
 *     vectors   40 vectors, a random one doubled each time, from 16 bytes up to 64 KiB
 *     big       8 live objects of 32 to 128 KB, a random one replaced each time
 *     messages  objects that one thread makes and another frees, each on a CPU of its own if there are two;
 *               the other calls what any thread may call, as free()
 *     passed    the same, in a pool that the two threads share
 *
 * With `out`: 200,000 objects; 80,000 in a phase; 1600 vectors; 32 objects of 100 KB to 4 MB; 200,000
 * messages under way. An operation is one object, or one doubling.
 */
#ifndef POOLS_FREES_H
#define POOLS_FREES_H

#include "pools.h"

#include <assert.h>

/* clang-format off */
enum {
    LIVE = 10000, REPLACEMENTS = 3000000, OUT_LIVE = 200000, OUT_REPLACEMENTS = 800000,
    VECTORS = 40, OUT_VECTORS = 1600, DOUBLINGS = 250000, VECTOR_LAST = 64 * 1024,
    BIG = 8, BIG_REPLACEMENTS = 80000, BIG_LEAST = 32 * 1000, BIG_MOST = 128 * 1000,
    OUT_BIG = 32, OUT_BIG_REPLACEMENTS = 4000, OUT_BIG_LEAST = 100 * 1000, OUT_BIG_MOST = 4000 * 1000,
    PHASES = 12, PHASE = 4000, PHASE_ROUNDS = 30, OUT_PHASE = 80000, OUT_PHASE_ROUNDS = 2,
    MESSAGES = 1 << 19, MESSAGE_BATCH = 64, RING = 4096, OUT_RING = 256 * 1024, OUT_UNDER_WAY = 200000
};
/* clang-format on */

#ifdef POOL_FREES
static inline void get_one(struct pool *pool, struct used *used, size_t size)
{
    use_new(used, pool_get(pool, size), size);
}

static inline void put_one(struct pool *pool, const struct used *used)
{
    use_read(used->object, used->size);
    pool_put(pool, used->object, used->size);
}

static uint64_t churn(void)
{
    uint32_t state = 1, live = out ? OUT_LIVE : LIVE;
    int replacements = out ? OUT_REPLACEMENTS : REPLACEMENTS;
    struct used *objects = measure_table(live, sizeof *objects);
    struct pool pool;
    pool_child(&pool, &root, 0);
    for (uint32_t i = 0; i < live; i++) get_one(&pool, &objects[i], sizes[i % SIZES]);
    for (int i = 0; i < replacements; i++) {
        struct used *one = &objects[measure_random(&state) % live];
        put_one(&pool, one);
        get_one(&pool, one, sizes[i % SIZES]);
    }
    pool_end(&pool);
    return (uint64_t)replacements;
}

static uint64_t vectors(void)
{
    uint32_t state = 1, n = out ? OUT_VECTORS : VECTORS;
    struct used *vectors = measure_table(n, sizeof *vectors);
    struct pool pool;
    pool_child(&pool, &root, 0);
    for (int i = 0; i < DOUBLINGS; i++) {
        struct used *vector = &vectors[measure_random(&state) % n];
        size_t old = vector->size;
        if (old == VECTOR_LAST) {
            put_one(&pool, vector);
            old = 0;
        }
        size_t size = old ? old * 2 : 16;
        char *object = old ? pool_resize(&pool, vector->object, old, size) : pool_get(&pool, size);
        if (old && object) use_read(object, old);
        use_new(vector, object, size);
    }
    pool_end(&pool);
    return DOUBLINGS;
}

static uint64_t big(void)
{
    uint32_t state = 1, live = out ? OUT_BIG : BIG;
    uint32_t least = out ? OUT_BIG_LEAST : BIG_LEAST, range = (out ? OUT_BIG_MOST : BIG_MOST) - least;
    int replacements = out ? OUT_BIG_REPLACEMENTS : BIG_REPLACEMENTS;
    struct used *objects = measure_table(live, sizeof *objects);
    struct pool pool;
    pool_child(&pool, &root, 0);
    for (uint32_t i = 0; i < live; i++) get_one(&pool, &objects[i], least + measure_random(&state) % range);
    for (int i = 0; i < replacements; i++) {
        struct used *one = &objects[measure_random(&state) % live];
        put_one(&pool, one);
        get_one(&pool, one, least + measure_random(&state) % range);
    }
    pool_end(&pool);
    return (uint64_t)replacements;
}

/* Frees nine in ten of n objects in random order; the others are the first of them then. */
static uint32_t thin(struct pool *pool, struct used *objects, uint32_t n, uint32_t *state)
{
    uint32_t left = n / 10;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t other = measure_random(state) % (i + 1);
        struct used object = objects[other];
        objects[other] = objects[i];
        objects[i] = object;
        if (i >= left) put_one(pool, &object);
    }
    return left;
}

static uint64_t phases(void)
{
    uint32_t state = 1, each = out ? OUT_PHASE : PHASE;
    int rounds = out ? OUT_PHASE_ROUNDS : PHASE_ROUNDS;
    struct used *objects = measure_table(each * 2, sizeof *objects);
    for (int round = 0; round < rounds; round++) {
        struct pool pool;
        uint32_t n = 0;
        pool_child(&pool, &root, 0);
        for (int phase = 0; phase < PHASES; phase++) {
            size_t size = 16 + (size_t)(phase * 5 % PHASES) * 16;
            for (uint32_t i = 0; i < each; i++) get_one(&pool, &objects[n++], size);
            n = thin(&pool, objects, n, &state);
        }
        pool_end(&pool);
    }
    return (uint64_t)rounds * PHASES * each;
}
#endif

#if defined(POOL_FREES_ELSEWHERE) || defined(POOL_PASSES)
static_assert(MESSAGES % MESSAGE_BATCH == 0, "the last batch is sent too");

struct ring {
    struct pool pool;
    _Alignas(64) _Atomic(unsigned) made;
    _Alignas(64) _Atomic(unsigned) freed;
    unsigned size, under_way; /* how many are not freed before the last is made */
    struct used *messages;
};

static inline void make_messages(struct ring *ring, void *(*get)(struct pool *pool, size_t size))
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        while (i % MESSAGE_BATCH == 0 &&
               i - atomic_load_explicit(&ring->freed, memory_order_acquire) > ring->size - MESSAGE_BATCH)
            sched_yield();
        use_new(&ring->messages[i % ring->size], get(&ring->pool, sizes[i % SIZES]), sizes[i % SIZES]);
        if ((i + 1) % MESSAGE_BATCH == 0) atomic_store_explicit(&ring->made, i + 1, memory_order_release);
    }
}

static inline void free_messages(struct ring *ring, void (*put)(struct pool *pool, void *object))
{
    stay_on_cpu(1);
    for (unsigned i = 0; i < MESSAGES;) {
        unsigned made = atomic_load_explicit(&ring->made, memory_order_acquire);
        unsigned end = made == MESSAGES ? made : made > ring->under_way ? made - ring->under_way : 0;
        if (i >= end) sched_yield();
        for (; i < end; i++) {
            const struct used *message = &ring->messages[i % ring->size];
            use_read(message->object, message->size);
            put(&ring->pool, message->object);
        }
        atomic_store_explicit(&ring->freed, i, memory_order_release);
    }
    add_sum();
}

static struct ring ring;

static inline uint64_t between_threads(void *(*get)(struct pool *, size_t), void *(*freeing)(void *unused))
{
    pthread_t thread;
    stay_on_cpu(0);
    ring.size = out ? OUT_RING : RING;
    ring.under_way = out ? OUT_UNDER_WAY : 0;
    ring.messages = measure_table(ring.size, sizeof *ring.messages);
    start_thread(&thread, freeing, NULL);
    make_messages(&ring, get);
    pthread_join(thread, NULL);
    pool_end(&ring.pool);
    return MESSAGES;
}
#endif

#ifdef POOL_FREES_ELSEWHERE
static inline void *get_sent(struct pool *pool, size_t size)
{
    void *message = pool_get(pool, size);
    pool_send(pool, message);
    return message;
}

static void *free_elsewhere(void *unused)
{
    free_messages(&ring, pool_put_elsewhere);
    return unused;
}

static uint64_t messages(void)
{
    pool_child(&ring.pool, &root, 0);
    return between_threads(get_sent, free_elsewhere);
}
#endif

#ifdef POOL_PASSES
static void *free_passed(void *unused)
{
    free_messages(&ring, pool_put_passed);
    return unused;
}

static uint64_t passed(void)
{
    pool_passed(&ring.pool, &root);
    return between_threads(pool_get_passed, free_passed);
}
#endif

#endif
