/* SPDX-License-Identifier: Apache-2.0 */
/* pools_frees.h: the workloads of pools.h, which includes this, that free and resize single objects.
 *
 *     churn     10,000 live objects, a random one replaced each time
 *     vectors   200 vectors, a random one doubled each time, from 16 bytes up to 64 KiB
 *     messages  objects that one thread makes and another frees, each on a CPU of its own if there are two
 *     big       30 live objects of 100 KB to 4 MB, a random one replaced each time
 *     phases    20,000 objects of one size, then nine in ten of those alive are freed in random
 *               order, then the next size, and so on
 *
 * An operation is one object, or one doubling.
 */
#include <assert.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    LIVE = 10000, REPLACEMENTS = 5000000,
    VECTORS = 200, DOUBLINGS = 500000, VECTOR_LAST = 64 * 1024,
    MESSAGES = 2000000, RING = 4096, MESSAGE_BATCH = 64,
    BIG = 30, BIG_REPLACEMENTS = 60000, BIG_LEAST = 100 * 1000, BIG_MOST = 4000 * 1000,
    PHASES = 12, PHASE = 20000, PHASE_ROUNDS = 12
};

#ifdef POOL_FREES
static uint64_t churn(void)
{
    static void *objects[LIVE];
    struct pool pool;
    uint32_t state = 1;
    pool_child(&pool, &root, 0);
    for (int i = 0; i < LIVE; i++) objects[i] = measure_touch(pool_get(&pool, sizes[i % SIZES]));
    for (int i = 0; i < REPLACEMENTS; i++) {
        void **slot = &objects[measure_random(&state) % LIVE];
        pool_put(&pool, *slot);
        *slot = measure_touch(pool_get(&pool, sizes[i % SIZES]));
    }
    pool_end(&pool);
    return REPLACEMENTS;
}

static uint64_t vectors(void)
{
    static struct {
        char *bytes;
        size_t size;
    } vectors[VECTORS], *vector;
    struct pool pool;
    uint32_t state = 1;
    pool_child(&pool, &root, 0);
    for (int i = 0; i < DOUBLINGS; i++) {
        vector = &vectors[measure_random(&state) % VECTORS];
        if (vector->size == VECTOR_LAST) {
            pool_put(&pool, vector->bytes);
            vector->size = 0;
        }
        size_t size = vector->size ? vector->size * 2 : 16;
        vector->bytes = vector->size ? pool_resize(&pool, vector->bytes, size) : pool_get(&pool, size);
        measure_touch(vector->bytes);
        vector->size = size;
    }
    pool_end(&pool);
    return DOUBLINGS;
}

static size_t draw_big(uint32_t *state)
{
    return BIG_LEAST + measure_random(state) % (BIG_MOST - BIG_LEAST);
}

static uint64_t big(void)
{
    static void *objects[BIG];
    struct pool pool;
    uint32_t state = 1;
    pool_child(&pool, &root, 0);
    for (int i = 0; i < BIG; i++) objects[i] = measure_touch(pool_get(&pool, draw_big(&state)));
    for (int i = 0; i < BIG_REPLACEMENTS; i++) {
        void **slot = &objects[measure_random(&state) % BIG];
        pool_put(&pool, *slot);
        *slot = measure_touch(pool_get(&pool, draw_big(&state)));
    }
    pool_end(&pool);
    return BIG_REPLACEMENTS;
}

/* Frees nine in ten of n objects in random order; the others are the first of them then. */
static int thin(struct pool *pool, void **objects, int n, uint32_t *state)
{
    int left = n / 10;
    for (int i = n - 1; i > 0; i--) {
        int other = (int)(measure_random(state) % (unsigned)(i + 1));
        void *object = objects[other];
        objects[other] = objects[i];
        objects[i] = object;
        if (i >= left) pool_put(pool, object);
    }
    return left;
}

static uint64_t phases(void)
{
    static void *objects[PHASE * 2];
    uint32_t state = 1;
    for (int round = 0; round < PHASE_ROUNDS; round++) {
        struct pool pool;
        int n = 0;
        pool_child(&pool, &root, 0);
        for (int phase = 0; phase < PHASES; phase++) {
            size_t size = 16 + (size_t)(phase * 5 % PHASES) * 16;
            for (int i = 0; i < PHASE; i++) objects[n++] = measure_touch(pool_get(&pool, size));
            n = thin(&pool, objects, n, &state);
        }
        pool_end(&pool);
    }
    return (uint64_t)PHASE_ROUNDS * PHASES * PHASE;
}
#endif

#ifdef POOL_FREES_ELSEWHERE
static_assert(MESSAGES % MESSAGE_BATCH == 0, "the last batch is sent too");

struct ring {
    struct pool pool;
    _Alignas(64) _Atomic(unsigned) made;
    _Alignas(64) _Atomic(unsigned) freed;
    void *messages[RING];
};

/* The calling thread stays on the n-th of the CPUs that the process may use. Two that wait for each other and
 * are now on one CPU, in turn, and now on two differ by a factor of ten. */
static void stay_on_cpu(int n)
{
    static cpu_set_t allowed;
    cpu_set_t one;
    int cpu = -1;
    if (n == 0) measure_need(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "which CPUs?");
    for (int left = n % CPU_COUNT(&allowed); left >= 0; left -= CPU_ISSET(cpu, &allowed) != 0) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    measure_need(sched_setaffinity(0, sizeof one, &one) == 0, "not on a CPU");
}

static void *free_messages(void *ring_)
{
    struct ring *ring = ring_;
    stay_on_cpu(1);
    for (unsigned i = 0; i < MESSAGES;) {
        unsigned made = atomic_load_explicit(&ring->made, memory_order_acquire);
        if (i == made) sched_yield();
        for (; i < made; i++) pool_put_elsewhere(&ring->pool, measure_touch(ring->messages[i % RING]));
        atomic_store_explicit(&ring->freed, i, memory_order_release);
    }
    return NULL;
}

static uint64_t messages(void)
{
    static struct ring ring;
    pthread_t thread;
    stay_on_cpu(0);
    pool_child(&ring.pool, &root, 0);
    measure_need(pthread_create(&thread, NULL, free_messages, &ring) == 0, "no thread");
    for (unsigned i = 0; i < MESSAGES; i++) {
        while (i % MESSAGE_BATCH == 0 &&
               i - atomic_load_explicit(&ring.freed, memory_order_acquire) > RING - MESSAGE_BATCH)
            sched_yield();
        void *message = measure_touch(pool_get(&ring.pool, sizes[i % SIZES]));
        pool_send(&ring.pool, message);
        ring.messages[i % RING] = message;
        if ((i + 1) % MESSAGE_BATCH == 0) atomic_store_explicit(&ring.made, i + 1, memory_order_release);
    }
    pthread_join(thread, NULL);
    pool_end(&ring.pool);
    return MESSAGES;
}
#endif
