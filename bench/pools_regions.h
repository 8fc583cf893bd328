/* SPDX-License-Identifier: Apache-2.0 */
/* pools_regions.h: the workloads of regions, compiled for each pool (pools.h).
 *
 *     request   create a child, 100 objects of 16 to 128 bytes, destroy
 *     nested    create a child, 60 to 400 objects and three children with 20 each, destroy
 *     three     create a child, 3 objects, destroy
 *     fill      create a child, 5000 objects of 16 to 128 bytes, destroy
 *     clear     200 KB of such objects, clear, again and again
 *     trees     a compiler's phases: create a child, build a tree of 500 to 15,000 nodes of 24 to 48
 *               bytes, walk it twice, destroy
 *     shared    a child, of which threads, each on a CPU of its own, take 5000 objects of 16 to 128 bytes
 *               each; it ends
 *     alone     the same with one thread and an ordinary pool
 *
 * After `out` request, nested and three keep so many children alive, the oldest of which ends when a new one
 * begins, as a server's do, that these have 16 MB; fill, clear, trees, shared and alone have larger regions.
 *
 * fill takes the size of its regions, 1 if no other: `fill out 3` has 48 MB.
 * request, nested and shared take a number of threads, 1 if none, among which the work is divided. Of the
 * first two each thread has a pool of its own below the root, and its children below that.
 */
#ifndef POOLS_REGIONS_H
#define POOLS_REGIONS_H

#include "pools.h"

/* clang-format off */
enum {
    REQUESTS = 150000, OUT_REQUESTS = 25000, OBJECTS = 100, REQUESTS_LIVE = OUT_OBJECTS / OBJECTS,
    NESTED = 35000, OUT_NESTED = 6000, NESTED_LIVE = 750,
    NESTED_LEAST = 60, NESTED_MOST = 400, NESTED_CHILDREN = 3, NESTED_EACH = 20,
    THREES = 600000, THREES_LIVE = 8192,
    FILLED = 6000000, OUT_FILLED = 15 * OUT_OBJECTS, FILL = 5000,
    CLEARED = 10000000, OUT_CLEARED = 15 * OUT_OBJECTS, CLEAR_OBJECTS = 200 * 1000 / 72,
    TREES = 1000, TREE_DEPTH = 7, TREE_OBJECTS = 3300, OUT_TREES = 6, OUT_DEPTH = 11, OUT_NODES = 270000,
    SHARED = 2000000, SHARED_OBJECTS = 5000
};
/* clang-format on */

/* Children of `objects` objects, `live` of them at a time. */
static inline uint64_t children_with(struct pool *parent, int children, int objects, int live)
{
    struct pool *pools = measure_table((size_t)live, sizeof *pools);
    struct used *used = measure_table((size_t)live * (size_t)objects, sizeof *used);
    unsigned place = 0;
    pool_many(live > 1);
    for (int i = 0, slot = 0; i < children + live; i++, slot = slot + 1 < live ? slot + 1 : 0) {
        struct used *its = &used[(size_t)slot * (size_t)objects];
        if (i >= live) {
            read_objects(its, objects);
            pool_end(&pools[slot]);
        }
        if (i >= children) continue;
        pool_child(&pools[slot], parent, objects);
        get_objects(&pools[slot], objects, &place, its);
    }
    munmap(pools, (size_t)live * sizeof *pools);
    munmap(used, (size_t)live * (size_t)objects * sizeof *used);
    return (uint64_t)children * (uint64_t)objects;
}

static uint64_t three(void) { return children_with(&root, THREES, 3, out ? THREES_LIVE : 1); }

static uint64_t fill(void)
{
    int objects = (out ? OUT_OBJECTS : FILL) * number;
    return children_with(&root, out ? OUT_FILLED / OUT_OBJECTS : FILLED / FILL, objects, 1);
}

static uint64_t request_below(struct pool *parent, int n)
{
    return children_with(parent, n, OBJECTS, out ? REQUESTS_LIVE : 1);
}

/* A child with children. */
struct nest {
    struct pool outer, inner[NESTED_CHILDREN];
    int n;
    struct used used[NESTED_MOST], inner_used[NESTED_CHILDREN][NESTED_EACH];
};

static inline void begin_nest(struct nest *nest, struct pool *parent, int n, unsigned *place)
{
    nest->n = n;
    pool_child(&nest->outer, parent, n);
    get_objects(&nest->outer, n, place, nest->used);
    for (int k = 0; k < NESTED_CHILDREN; k++) {
        pool_child(&nest->inner[k], &nest->outer, NESTED_EACH);
        get_objects(&nest->inner[k], NESTED_EACH, place, nest->inner_used[k]);
    }
}

static inline void end_nest(struct nest *nest)
{
    for (int k = NESTED_CHILDREN - 1; k >= 0; k--) {
        read_objects(nest->inner_used[k], NESTED_EACH);
        pool_end(&nest->inner[k]);
    }
    read_objects(nest->used, nest->n);
    pool_end(&nest->outer);
}

static uint64_t nested_below(struct pool *parent, int cycles)
{
    int live = out ? NESTED_LIVE : 1;
    struct nest *nests = measure_table((size_t)live, sizeof *nests);
    unsigned place = 0;
    uint64_t objects = 0;
    pool_many(true);
    for (int i = 0; i < cycles + live; i++) {
        struct nest *nest = &nests[i % live];
        if (i >= live) {
            objects += (uint64_t)nest->n + NESTED_CHILDREN * NESTED_EACH;
            end_nest(nest);
        }
        int n = NESTED_LEAST + i * 37 % (NESTED_MOST - NESTED_LEAST + 1);
        if (i < cycles) begin_nest(nest, parent, n, &place);
    }
    munmap(nests, (size_t)live * sizeof *nests);
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
    add_sum();
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
        start_thread(&shares[i].thread, run_share, &shares[i]);
    }
    for (int i = 0; i < number; i++) {
        pthread_join(shares[i].thread, NULL);
        operations += shares[i].operations;
    }
    return operations;
}

static uint64_t request(void) { return divided(request_below, out ? OUT_REQUESTS : REQUESTS); }
static uint64_t nested(void) { return divided(nested_below, out ? OUT_NESTED : NESTED); }

static uint64_t clear(void)
{
    int n = out ? OUT_OBJECTS : CLEAR_OBJECTS;
    struct used *used = measure_table((size_t)n, sizeof *used);
    struct pool pool;
    unsigned place = 0;
    uint64_t objects = 0;
    pool_child(&pool, &root, n);
    for (; objects < (out ? OUT_CLEARED : CLEARED); objects += (unsigned)n) {
        get_objects(&pool, n, &place, used);
        read_objects(used, n);
        pool_clear(&pool);
    }
    pool_end(&pool);
    return objects;
}

/* A syntax tree: what a node means is drawn, its size, and how many children it has, none from some depth. */
struct node {
    struct node *next, *children;
    uint32_t meaning;
};

static inline size_t node_size(uint32_t meaning) { return sizeof(struct node) + meaning % 4 * 8; }

static struct node *build_tree(struct pool *pool, struct node *next, int depth, uint32_t *state)
{
    uint32_t drawn = measure_random(state);
    struct node *node = pool_get(pool, node_size(drawn));
    measure_need(node != NULL, "no memory");
    use_write(node, node_size(drawn));
    *node = (struct node){.next = next, .meaning = drawn};
    for (uint32_t i = depth > 0 ? 2 + drawn / 4 % 3 : 0; i > 0; i--)
        node->children = build_tree(pool, node->children, depth - 1, state);
    return node;
}

/* Counts a tree's nodes, and what is in them: the last word of a larger one, too. */
static uint64_t walk_tree(const struct node *node)
{
    uint64_t nodes = 0;
    for (; node; node = node->next) {
        size_t size = node_size(node->meaning);
        use_sum += node->meaning;
        if (size > sizeof *node) use_sum += use_get((const char *)node + size - USE_WORD);
        nodes += 1 + walk_tree(node->children);
    }
    return nodes;
}

static uint64_t trees(void)
{
    uint32_t state = 1;
    uint64_t nodes = 0;
    for (int i = out ? OUT_TREES : TREES; i > 0; i--) {
        struct pool pool;
        pool_child(&pool, &root, out ? OUT_NODES : TREE_OBJECTS);
        const struct node *top = build_tree(&pool, NULL, out ? OUT_DEPTH : TREE_DEPTH, &state);
        nodes += walk_tree(top);
        walk_tree(top);
        pool_end(&pool);
    }
    return nodes;
}

#ifdef POOL_SHARES
/* What one of the threads has. The first one begins and ends the pools; no thread starts or ends meanwhile,
 * which takes as long as a thousand objects. */
struct sharer {
    pthread_t thread;
    struct pool *pool;
    struct used *used;
    int threads, objects, rounds, cpu;
    bool alone;
};

/* Waits until all threads are here. */
static void meet(int threads)
{
    static _Atomic unsigned came;
    unsigned meeting = atomic_fetch_add(&came, 1) / (unsigned)threads;
    while (atomic_load(&came) / (unsigned)threads == meeting) sched_yield();
}

static inline void get_shared(const struct sharer *sharer)
{
    for (int i = 0; i < sharer->objects && sharer->alone; i++)
        use_new(&sharer->used[i], pool_get(sharer->pool, sizes[i % SIZES]), sizes[i % SIZES]);
    for (int i = 0; i < sharer->objects && !sharer->alone; i++)
        use_new(&sharer->used[i], pool_get_shared(sharer->pool, sizes[i % SIZES]), sizes[i % SIZES]);
}

static void *run_sharer(void *sharer_)
{
    const struct sharer *sharer = sharer_;
    bool is_first = sharer->cpu == 0;
    stay_on_cpu(sharer->cpu);
    for (int i = 0; i < sharer->rounds; i++) {
        if (is_first && sharer->alone) pool_child(sharer->pool, &root, sharer->objects);
        if (is_first && !sharer->alone) pool_shared(sharer->pool, &root);
        meet(sharer->threads);
        get_shared(sharer);
        read_objects(sharer->used, sharer->objects);
        meet(sharer->threads);
        if (is_first) pool_end(sharer->pool);
    }
    add_sum();
    return NULL;
}

static uint64_t share(int threads, bool is_alone)
{
    struct sharer sharers[THREADS_MAX];
    struct pool pool;
    int objects = out ? OUT_OBJECTS / threads : SHARED_OBJECTS, rounds = SHARED / threads / objects;
    for (int i = 0; i < threads; i++) {
        sharers[i] = (struct sharer){.pool = &pool,
                                     .threads = threads,
                                     .objects = objects,
                                     .rounds = rounds,
                                     .cpu = i,
                                     .alone = is_alone,
                                     .used = measure_table((size_t)objects, sizeof(struct used))};
    }
    for (int i = 0; i < threads; i++) start_thread(&sharers[i].thread, run_sharer, &sharers[i]);
    for (int i = 0; i < threads; i++) pthread_join(sharers[i].thread, NULL);
    return (uint64_t)rounds * (uint64_t)threads * (uint64_t)objects;
}

static uint64_t shared(void)
{
    measure_need(number >= 1 && number <= THREADS_MAX, "1 to 64 threads");
    return share(number, false);
}

static uint64_t alone(void) { return share(1, true); }
#endif

#endif
