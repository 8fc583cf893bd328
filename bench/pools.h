/* SPDX-License-Identifier: Apache-2.0 */
/* pools.h: workloads on regions, written once for all of them: pool_NAME WORKLOAD [NUMBER].
 *
 * A program pool_NAME.c says what a pool is and how its calls are made, then includes this. The
 * calls are inlined into the workloads as a user's program would have them: a call into the
 * library each, or a macro where the library's interface is one. (A program each, because linking
 * mimalloc also replaces malloc.)
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
 *     POOL_COUNTS                     pool_held(pool), the bytes that it has of whoever is below it
 *     POOL_STACKS                     objects younger than a struct mark end together: pool_mark(pool, mark),
 *                                     and pool_release(pool, mark), which the mark does not outlive. The last
 *                                     object may change: pool_resize_last(pool, object, old size, size) and
 *                                     pool_put_last(pool, object)
 *     POOL_GROWS                      struct growing, which zeros begin: pool_grow(pool, growing, byte), and
 *                                     pool_grown(pool, growing), the object
 *     POOL_PLAIN                      the program itself frees some objects, each: pool_new(pool, size),
 *                                     pool_delete(pool, object, size). What has POOL_FREES has them
 *
 * Workloads of regions, here; those that free single objects are in pools_frees.h, those that look at
 * memory in pools_memory.h, those that do what a real program did in pools_trace.h, and programs that had an
 * allocator of their own in pools_gcc.h, pools_lcc.h, pools_parser.h and pools_boxed.h.
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
 * Objects are written, and read before they die (use.h). What is alive at once is 1 KB to 800 KB: within a
 * second-level cache of 1 MB. After the argument `out` it is about 16 MB: request, nested and three keep
 * so many children alive, the oldest of which ends when a new one begins, as a server's do; fill, clear,
 * trees, shared and alone have larger regions.
 *
 * fill takes the size of its regions, 1 if no other: `fill out 3` has 48 MB.
 * request, nested and shared take a number of threads, 1 if none, among which the work is divided. Of the
 * first two each thread has a pool of its own below the root, and its children below that. An operation is
 * one object. After the argument `short` programs, and traces, run for a moment.
 */
#include "measure.h"
#include "use.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* clang-format off */
enum {
    SIZES = 1024, SIZE_LEAST = 16, SIZE_MOST = 128,
    OUT_OBJECTS = 220000, /* of these sizes: 16 MB */
    REQUESTS = 150000, OUT_REQUESTS = 25000, OBJECTS = 100, REQUESTS_LIVE = OUT_OBJECTS / OBJECTS,
    NESTED = 35000, OUT_NESTED = 6000, NESTED_LIVE = 750,
    NESTED_LEAST = 60, NESTED_MOST = 400, NESTED_CHILDREN = 3, NESTED_EACH = 20,
    THREES = 600000, THREES_LIVE = 8192,
    FILLED = 6000000, OUT_FILLED = 15 * OUT_OBJECTS, FILL = 5000,
    CLEARED = 10000000, OUT_CLEARED = 15 * OUT_OBJECTS, CLEAR_OBJECTS = 200 * 1000 / 72,
    TREES = 1000, TREE_DEPTH = 7, TREE_OBJECTS = 3300, OUT_TREES = 6, OUT_DEPTH = 11, OUT_NODES = 270000,
    SHARED = 2000000, SHARED_OBJECTS = 5000,
    THREADS_MAX = 64
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
static int number = 1; /* the argument */
static bool out;       /* of the cache */
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

static void *table_of(size_t n, size_t size)
{
    void *table = mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    measure_need(table != MAP_FAILED, "no memory");
    return memset(table, 0, n * size);
}

/* Children of `objects` objects, `live` of them at a time. */
static inline uint64_t children_with(struct pool *parent, int children, int objects, int live)
{
    struct pool *pools = table_of((size_t)live, sizeof *pools);
    struct used *used = table_of((size_t)live * (size_t)objects, sizeof *used);
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
    struct nest *nests = table_of((size_t)live, sizeof *nests);
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

static void add_sum(void)
{
    atomic_fetch_add(&sum, use_sum);
    use_sum = 0;
}

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
    struct used *used = table_of((size_t)n, sizeof *used);
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
                                     .used = table_of((size_t)objects, sizeof(struct used))};
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

#include "pools_frees.h"
#include "pools_memory.h"
#include "pools_trace.h"
#ifndef POOL_TOLD
#include "pools_gcc.h"
#include "pools_lcc.h"
#endif

#ifdef POOL_FREES
#define POOL_PLAIN
static inline void *pool_new(struct pool *pool, size_t size) { return pool_get(pool, size); }
static inline void pool_delete(struct pool *pool, void *object, size_t size) { pool_put(pool, object, size); }
#endif
#ifdef POOL_PLAIN
#include "pools_boxed.h"
#include "pools_parser.h"
#endif

/* clang-format off */
static const struct {
    const char *name;
    uint64_t (*run)(void);
} workloads[] = {
    {"request", request}, {"nested", nested}, {"three", three}, {"fill", fill}, {"clear", clear},
    {"trees", trees}, {"httpd", httpd}, {"idle", idle}, {"hold", hold},
#ifndef POOL_TOLD
    {"gcc", gcc}, {"lcc", lcc},
#endif
#ifdef POOL_PLAIN
    {"parser", parser}, {"boxed", boxed},
#endif
#ifdef POOL_FREES
    {"churn", churn}, {"vectors", vectors}, {"big", big}, {"phases", phases}, {"perl", perl},
#ifndef POOL_ALONE
    {"fall", fall},
#endif
#endif
#ifdef POOL_FREES_ELSEWHERE
    {"messages", messages},
#endif
#ifdef POOL_PASSES
    {"passed", passed},
#endif
#ifdef POOL_SHARES
    {"shared", shared}, {"alone", alone},
#endif
};
/* clang-format on */

int main(int argc, char **argv)
{
    draw_sizes();
    measure_need(sched_getaffinity(0, sizeof cpus, &cpus) == 0, "which CPUs?");
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "out") == 0)
            out = true;
        else if (strcmp(argv[i], "short") == 0)
            brief = true;
        else
            number = atoi(argv[i]);
    }
#ifdef POOL_FEW
    if (out && argc > 1 && strcmp(argv[1], "three") == 0) return 77;
#endif
    pool_begin(&root);
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            restart_clocks();
            uint64_t operations = workloads[i].run();
            measure_print(measure_now() - started, operations);
            measure_print_named("cpu_ns", (long long)(measure_cpu() - started_cpu));
            add_sum();
            measure_print_named("sum", (long long)(sum % 1000000007));
            print_told();
            return 0;
        }
    return 77; /* this pool has no such workload */
}
