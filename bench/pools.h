/* pools.h: workloads on regions, written once for all of them: pool_NAME WORKLOAD.
 *
 * A program pool_NAME.c says what a pool is and how its calls are made, then includes this. The
 * calls are inlined into the workloads as a user's program would have them: a call into the
 * library each, or a macro where the library's interface is one. (A program each, because linking
 * mimalloc also replaces malloc.)
 *
 * It defines: struct pool; pool_begin() -> root; pool_child(child, parent); pool_get(pool, size);
 * pool_clear(pool); pool_end(pool); if it can free one object, POOL_FREES, pool_put(pool, object)
 * and pool_resize(pool, object, size); and if another thread than the pool's may free one,
 * POOL_FREES_ELSEWHERE, pool_send(pool, object) for the one and pool_put_elsewhere(pool, object) for
 * the other; and if several threads may use one, POOL_SHARES, pool_shared(child, parent), and
 * pool_get_shared(pool, size).
 *
 *     request   create a child, 100 objects of 16 to 128 bytes, destroy
 *     nested    create a child, 60 to 400 objects and three children with 20 each, destroy
 *     three     create a child, 3 objects, destroy
 *     fill      create a child, 20,000 objects of 16 to 128 bytes, destroy
 *     clear     200 KB of such objects, clear, again and again
 *     trees     a compiler's phases: create a child, build a tree of 500 to 15,000 nodes of 24 to 48
 *               bytes, walk it twice, destroy
 *     churn     10,000 live objects, a random one replaced each time
 *     vectors   200 vectors, a random one doubled each time, from 16 bytes up to 64 KiB
 *     messages  objects that one thread makes and another frees
 *     shared    two threads, each takes 50,000 objects of 16 to 128 bytes of one pool; then it ends
 *     big       30 live objects of 100 KB to 4 MB, a random one replaced each time
 *     phases    20,000 objects of one size, then nine in ten of those alive are freed in random
 *               order, then the next size, and so on
 *
 * An operation is one object, or one doubling.
 */
#include "measure.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SIZES = 1024,
    REQUESTS = 200000, OBJECTS = 100,
    NESTED = 45000, NESTED_CHILDREN = 3, NESTED_EACH = 20,
    THREES = 1500000,
    FILLS = 700, FILL = 20000,
    CLEARS = 8000, CLEAR_BYTES = 200 * 1000,
    TREES = 1200, TREE_DEPTH = 7,
    LIVE = 10000, REPLACEMENTS = 5000000,
    VECTORS = 200, DOUBLINGS = 500000, VECTOR_LAST = 64 * 1024,
    MESSAGES = 4000000, RING = 4096, MESSAGE_BATCH = 64,
    BIG = 30, BIG_REPLACEMENTS = 60000, BIG_LEAST = 100 * 1000, BIG_MOST = 4000 * 1000,
    SHARED_ROUNDS = 40, SHARERS = 2, SHARED = 50000,
    PHASES = 12, PHASE = 20000, PHASE_ROUNDS = 12
};

static size_t sizes[SIZES];
static struct pool root;

static void draw_sizes(void)
{
    uint32_t state = 12345;
    for (int i = 0; i < SIZES; i++) sizes[i] = 16 + measure_random(&state) % 113;
}

/* n objects, from a place among the sizes that moves on. */
static inline void get_objects(struct pool *pool, int n, unsigned *place)
{
    for (int i = 0; i < n; i++) measure_touch(pool_get(pool, sizes[(*place)++ % SIZES]));
}

static uint64_t children_with(int children, int objects)
{
    unsigned place = 0;
    for (int i = 0; i < children; i++) {
        struct pool child;
        pool_child(&child, &root);
        get_objects(&child, objects, &place);
        pool_end(&child);
    }
    return (uint64_t)children * (uint64_t)objects;
}

static uint64_t request(void) { return children_with(REQUESTS, OBJECTS); }
static uint64_t three(void) { return children_with(THREES, 3); }
static uint64_t fill(void) { return children_with(FILLS, FILL); }

static uint64_t nested(void)
{
    unsigned place = 0;
    uint64_t objects = 0;
    for (int i = 0; i < NESTED; i++) {
        struct pool outer, inner[NESTED_CHILDREN];
        int n = 60 + i * 37 % 341;
        pool_child(&outer, &root);
        get_objects(&outer, n, &place);
        for (int k = 0; k < NESTED_CHILDREN; k++) {
            pool_child(&inner[k], &outer);
            get_objects(&inner[k], NESTED_EACH, &place);
        }
        for (int k = NESTED_CHILDREN - 1; k >= 0; k--) pool_end(&inner[k]);
        pool_end(&outer);
        objects += (uint64_t)n + NESTED_CHILDREN * NESTED_EACH;
    }
    return objects;
}

static uint64_t clear(void)
{
    struct pool pool;
    unsigned place = 0;
    uint64_t objects = 0;
    pool_child(&pool, &root);
    for (int i = 0; i < CLEARS; i++) {
        for (size_t bytes = 0; bytes < CLEAR_BYTES; objects++) {
            size_t size = sizes[place++ % SIZES];
            measure_touch(pool_get(&pool, size));
            bytes += size;
        }
        pool_clear(&pool);
    }
    pool_end(&pool);
    return objects;
}

/* A syntax tree: what a node means is drawn, and how many children it has, none from some depth on. */
struct node {
    struct node *next, *children;
    uint32_t meaning;
};

static struct node *build_tree(struct pool *pool, struct node *next, int depth, uint32_t *state)
{
    uint32_t drawn = measure_random(state);
    struct node *node = measure_touch(pool_get(pool, sizeof *node + drawn % 4 * 8));
    *node = (struct node){.next = next, .meaning = drawn};
    for (uint32_t i = depth > 0 ? 2 + drawn / 4 % 3 : 0; i > 0; i--)
        node->children = build_tree(pool, node->children, depth - 1, state);
    return node;
}

/* Counts a tree's nodes, and what is in them. */
static uint64_t walk_tree(const struct node *node, uint64_t *meaning)
{
    uint64_t nodes = 0;
    for (; node; node = node->next) {
        *meaning += node->meaning;
        nodes += 1 + walk_tree(node->children, meaning);
    }
    return nodes;
}

static uint64_t trees(void)
{
    uint32_t state = 1;
    uint64_t nodes = 0;
    for (int i = 0; i < TREES; i++) {
        struct pool pool;
        uint64_t first = 0, second = 0;
        pool_child(&pool, &root);
        const struct node *top = build_tree(&pool, NULL, TREE_DEPTH, &state);
        nodes += walk_tree(top, &first);
        walk_tree(top, &second);
        measure_need(first == second, "a tree changed");
        pool_end(&pool);
    }
    return nodes;
}

#ifdef POOL_FREES
static uint64_t churn(void)
{
    static void *objects[LIVE];
    struct pool pool;
    uint32_t state = 1;
    pool_child(&pool, &root);
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
    pool_child(&pool, &root);
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
    pool_child(&pool, &root);
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
        pool_child(&pool, &root);
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

static void *free_messages(void *ring_)
{
    struct ring *ring = ring_;
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
    pool_child(&ring.pool, &root);
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

#ifdef POOL_SHARES
static void *get_shared(void *pool)
{
    for (int i = 0; i < SHARED; i++) measure_touch(pool_get_shared(pool, sizes[i % SIZES]));
    return NULL;
}

static uint64_t shared(void)
{
    pthread_t threads[SHARERS];
    struct pool pool;
    for (int round = 0; round < SHARED_ROUNDS; round++) {
        pool_shared(&pool, &root);
        for (int i = 0; i < SHARERS; i++)
            measure_need(pthread_create(&threads[i], NULL, get_shared, &pool) == 0, "no thread");
        for (int i = 0; i < SHARERS; i++) pthread_join(threads[i], NULL);
        pool_end(&pool);
    }
    return (uint64_t)SHARED_ROUNDS * SHARERS * SHARED;
}
#endif

static const struct {
    const char *name;
    uint64_t (*run)(void);
} workloads[] = {
    {"request", request}, {"nested", nested}, {"three", three}, {"fill", fill}, {"clear", clear},
    {"trees", trees},
#ifdef POOL_FREES
    {"churn", churn}, {"vectors", vectors}, {"big", big}, {"phases", phases},
#endif
#ifdef POOL_FREES_ELSEWHERE
    {"messages", messages},
#endif
#ifdef POOL_SHARES
    {"shared", shared},
#endif
};

int main(int argc, char **argv)
{
    draw_sizes();
    pool_begin(&root);
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            uint64_t start = measure_now(), operations = workloads[i].run();
            measure_print(measure_now() - start, operations);
            return 0;
        }
    return 77; /* this pool has no such workload */
}
