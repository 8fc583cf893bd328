/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h: workloads on regions, written once for all of them: pool_NAME WORKLOAD [NUMBER].
 *
 * A program pool_NAME.c says what a pool is and how its calls are made, then includes this. The
 * calls are inlined into the workloads as a user's program would have them: a call into the
 * library each, or a macro where the library's interface is one. (A program each, because linking
 * mimalloc also replaces malloc.)
 *
 * It defines: struct pool; pool_begin(root); pool_child(child, parent, objects), objects the number
 * that it will have, about, for a pool that wants to be told; pool_get(pool, size); pool_clear(pool);
 * pool_end(pool). And, as far as it has them:
 *
 *     pool_of_thread(child, root)     a macro: the pool of a new thread, in that thread, below the root if
 *                                     it can be; without, pool_child serves
 *     POOL_FREES                      pool_put(pool, object) frees one object, which pool_resize(pool,
 *                                     object, size) resizes
 *     POOL_FREES_ELSEWHERE            another thread may free one: pool_send(pool, object) for the pool's
 *                                     thread, pool_put_elsewhere(pool, object) for the other
 *     POOL_SHARES                     several threads may use one: pool_shared(child, parent), and
 *                                     pool_get_shared(pool, size)
 *     POOL_COUNTS                     pool_held(pool), the bytes that it has of whoever is below it
 *
 * Workloads of regions, here; those that free single objects are in pools_frees.h, those that look at
 * memory in pools_memory.h.
 *
 *     request   create a child, 100 objects of 16 to 128 bytes, destroy
 *     nested    create a child, 60 to 400 objects and three children with 20 each, destroy
 *     three     create a child, 3 objects, destroy
 *     fill      create a child, 20,000 objects of 16 to 128 bytes, destroy
 *     clear     200 KB of such objects, clear, again and again
 *     trees     a compiler's phases: create a child, build a tree of 500 to 15,000 nodes of 24 to 48
 *               bytes, walk it twice, destroy
 *     shared    two threads, each takes 50,000 objects of 16 to 128 bytes of one pool; then it ends
 *
 * request and nested take a number of threads, 1 if none, among which the work is divided: each has a pool
 * of its own below the root, and its children below that. An operation is one object.
 */
#include "measure.h"

#include <pthread.h>
#include <string.h>

enum {
    SIZES = 1024, SIZE_LEAST = 16, SIZE_MOST = 128,
    REQUESTS = 200000, OBJECTS = 100,
    NESTED = 45000, NESTED_LEAST = 60, NESTED_MOST = 400, NESTED_CHILDREN = 3, NESTED_EACH = 20,
    THREES = 1500000,
    FILLS = 700, FILL = 20000,
    CLEARS = 8000, CLEAR_BYTES = 200 * 1000, CLEAR_OBJECTS = CLEAR_BYTES / 72,
    TREES = 1200, TREE_DEPTH = 7, TREE_OBJECTS = 3300,
    SHARED_ROUNDS = 40, SHARERS = 2, SHARED = 50000,
    THREADS_MAX = 64
};

#ifndef pool_of_thread
#define pool_of_thread(child, root) pool_child(child, root, 0)
#endif

static size_t sizes[SIZES];
static struct pool root;
static int number = 1; /* the argument */

static void draw_sizes(void)
{
    uint32_t state = 12345;
    for (int i = 0; i < SIZES; i++)
        sizes[i] = SIZE_LEAST + measure_random(&state) % (SIZE_MOST - SIZE_LEAST + 1);
}

/* n objects, from a place among the sizes that moves on. */
static inline void get_objects(struct pool *pool, int n, unsigned *place)
{
    for (int i = 0; i < n; i++) measure_touch(pool_get(pool, sizes[(*place)++ % SIZES]));
}

static inline uint64_t children_with(struct pool *parent, int children, int objects)
{
    unsigned place = 0;
    for (int i = 0; i < children; i++) {
        struct pool child;
        pool_child(&child, parent, objects);
        get_objects(&child, objects, &place);
        pool_end(&child);
    }
    return (uint64_t)children * (uint64_t)objects;
}

static uint64_t three(void) { return children_with(&root, THREES, 3); }
static uint64_t fill(void) { return children_with(&root, FILLS, FILL); }

static uint64_t request_below(struct pool *parent, int n) { return children_with(parent, n, OBJECTS); }

static uint64_t nested_below(struct pool *parent, int cycles)
{
    unsigned place = 0;
    uint64_t objects = 0;
    for (int i = 0; i < cycles; i++) {
        struct pool outer, inner[NESTED_CHILDREN];
        int n = NESTED_LEAST + i * 37 % (NESTED_MOST - NESTED_LEAST + 1);
        pool_child(&outer, parent, n);
        get_objects(&outer, n, &place);
        for (int k = 0; k < NESTED_CHILDREN; k++) {
            pool_child(&inner[k], &outer, NESTED_EACH);
            get_objects(&inner[k], NESTED_EACH, &place);
        }
        for (int k = NESTED_CHILDREN - 1; k >= 0; k--) pool_end(&inner[k]);
        pool_end(&outer);
        objects += (uint64_t)n + NESTED_CHILDREN * NESTED_EACH;
    }
    return objects;
}

/* What a thread does: cycles below a pool of its own. */
struct share {
    pthread_t thread;
    uint64_t (*run)(struct pool *parent, int cycles);
    int cycles;
    uint64_t operations;
};

static void *run_share(void *share_)
{
    struct share *share = share_;
    struct pool pool;
    pool_of_thread(&pool, &root);
    share->operations = share->run(&pool, share->cycles);
    pool_end(&pool);
    return NULL;
}

/* With one thread there is no second: mallocs know that, and so should who measures them. */
static uint64_t divided(uint64_t (*run)(struct pool *parent, int cycles), int cycles)
{
    static struct share shares[THREADS_MAX];
    uint64_t operations = 0;
    measure_need(number >= 1 && number <= THREADS_MAX, "1 to 64 threads");
    if (number == 1) return run(&root, cycles);
    for (int i = 0; i < number; i++) {
        shares[i] = (struct share){.run = run, .cycles = cycles / number};
        measure_need(pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) == 0, "no thread");
    }
    for (int i = 0; i < number; i++) {
        pthread_join(shares[i].thread, NULL);
        operations += shares[i].operations;
    }
    return operations;
}

static uint64_t request(void) { return divided(request_below, REQUESTS); }
static uint64_t nested(void) { return divided(nested_below, NESTED); }

static uint64_t clear(void)
{
    struct pool pool;
    unsigned place = 0;
    uint64_t objects = 0;
    pool_child(&pool, &root, CLEAR_OBJECTS);
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
        pool_child(&pool, &root, TREE_OBJECTS);
        const struct node *top = build_tree(&pool, NULL, TREE_DEPTH, &state);
        nodes += walk_tree(top, &first);
        walk_tree(top, &second);
        measure_need(first == second, "a tree changed");
        pool_end(&pool);
    }
    return nodes;
}

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

#include "pools_frees.h"
#include "pools_memory.h"

static const struct {
    const char *name;
    uint64_t (*run)(void);
} workloads[] = {
    {"request", request}, {"nested", nested}, {"three", three}, {"fill", fill}, {"clear", clear},
    {"trees", trees}, {"idle", idle}, {"hold", hold},
#ifdef POOL_FREES
    {"churn", churn}, {"vectors", vectors}, {"big", big}, {"phases", phases}, {"fall", fall},
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
    if (argc > 2) number = atoi(argv[2]);
    pool_begin(&root);
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            uint64_t cpu = measure_cpu(), start = measure_now(), operations = workloads[i].run();
            measure_print(measure_now() - start, operations);
            measure_print_named("cpu_ns", measure_cpu() - cpu);
            print_told();
            return 0;
        }
    return 77; /* this pool has no such workload */
}
