/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of threads, for whichever malloc is preloaded: threads WORKLOAD THREADS [count|short]. After what
 * is told of them in the papers (ASPLOS 2000, section 5; Larson and Krishnan, ISMM 1998), sizes and numbers
 * theirs where they give them.
 *
 *     threadtest   each thread allocates its share of 100,000 objects of 8 bytes, frees them, again and again
 *     larson       servers: each replaces random ones of 10,000 blocks of 10 to 100 bytes, ends, and leaves
 *                  them to its successor, a new thread
 *     shbench      random sizes, most from 8 to 100 bytes, freed in random order, and bursts last in first
 *                  out; most of what is live at the most is so at the end
 *     prodcons     half of the threads allocate, the others free, a bounded queue between each pair
 *     bleeding     mixed sizes from 16 bytes to 8 KiB, exchanged in a table that all threads share: most are
 *                  freed by others than who made them
 *     storm        20,000 threads that live for 50 objects each and leave 5 to the next
 *     scratch      passive false sharing: each thread frees an object that it was given, of lines that all
 *                  were given parts of, then allocates one, writes to it, frees it, again and again
 *     thrash       active false sharing: the same without the gift
 *     pairs        in one thread, malloc and free of 64 bytes, one after the other
 *     batch        the same with 500 of them, then their frees, first in first out
 *     sizes        the same with a thousand live blocks of 16 to 1024 bytes, or as many as stand in the place
 *                  of threads, a random one replaced each time
 *     barnes       bodies that pull each other: it computes much, and makes a tree of space each round
 *
 * The work is fixed and divided among the threads. An operation is a malloc and its free; of scratch and
 * thrash, one write. Besides time and operations the program tells by how many KiB what is resident grew
 * between a tenth of the work and its end, where that must stay flat; with count, the most bytes asked for at
 * once; what barnes computed or one thread has read, which must be the same on each malloc; and what reap
 * counted, if it is the malloc. With short barnes has a thousand bodies.
 */
#include "barnes.h"
#include "hoard.h"
#include "workers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* clang-format off */
enum {
    OBJECTS = 100000, OBJECT_SIZE = 8, ROUNDS = 250,
    SERVED = 10000, SERVED_MIN = 10, SERVED_MAX = 100, GENERATIONS = 320, GENERATION = 25000,
    SH_LIVE = 8192, SH_OPERATIONS = 20000000, SH_BURST = 64,
    PASSED = 12000000, BATCH = 100, QUEUE = 16,
    TABLE = 4096, EXCHANGES = 4000000,
    STORM = 20000, STORM_OBJECTS = 50, STORM_LEFT = 5,
    SHARED_OBJECTS = 400000, SHARED_WRITES = 1000,
    PAIRS = 20000000, PAIR_SIZE = 64, PAIR_BATCH = 500, PAIR_BATCHES = 20000,
    LIVE = 1000, LIVE_MOST = 1000000, REPLACEMENTS = 3000000
};
/* clang-format on */

static int threads;
static bool brief;
static long resident_early; /* 0: no mark was set */
static _Atomic int marks;

/* Once, by whichever thread is first to have done a tenth. */
static void mark_tenth(void)
{
    if (atomic_fetch_add(&marks, 1) == 0) resident_early = measure_resident();
}

static uint32_t seed(int index) { return 2463534242u + (uint32_t)index * 2654435761u; }

/* --- each thread by itself ------------------------------------------------------------------- */

static void threadtest_thread(int index)
{
    (void)index;
    int n = OBJECTS / threads;
    void **objects = take((size_t)n * sizeof *objects);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 1; i < n; i++) objects[i] = take(OBJECT_SIZE);
        for (int i = 1; i < n; i++) give(objects[i]);
    }
    give(objects);
}

static uint64_t threadtest(void)
{
    on_threads(threadtest_thread, threads);
    return (uint64_t)(OBJECTS / threads - 1) * (uint64_t)threads * ROUNDS;
}

static size_t sh_size(uint32_t r) { return r % 16 == 0 ? 100 + (r >> 8) % 900 : 8 + (r >> 8) % 93; }

static void sh_burst(uint32_t *state)
{
    void *burst[SH_BURST];
    for (int i = 0; i < SH_BURST; i++) burst[i] = take(sh_size(measure_random(state)));
    for (int i = SH_BURST; i > 0; i--) give(burst[i - 1]);
}

static void sh_thread(int index)
{
    static void *blocks[SH_LIVE];
    int n = SH_LIVE / threads;
    void **mine = &blocks[index * n];
    uint32_t state = seed(index);
    for (int i = 0; i < SH_OPERATIONS / threads; i++) {
        void **slot = &mine[measure_random(&state) % (uint32_t)n];
        give(*slot);
        *slot = take(sh_size(measure_random(&state)));
        if (i % 1024 != 0) continue;
        sh_burst(&state);
        i += SH_BURST;
    }
}

static uint64_t shbench(void)
{
    on_threads(sh_thread, threads);
    return SH_OPERATIONS;
}

/* --- one thread ------------------------------------------------------------------------------ */

static uint64_t pairs(void)
{
    for (int i = 0; i < PAIRS; i++) give(take(PAIR_SIZE));
    return PAIRS;
}

static uint64_t batch(void)
{
    void *blocks[PAIR_BATCH];
    for (int round = 0; round < PAIR_BATCHES; round++) {
        for (int i = 0; i < PAIR_BATCH; i++) blocks[i] = take(PAIR_SIZE);
        for (int i = 0; i < PAIR_BATCH; i++) give(blocks[i]);
    }
    return (uint64_t)PAIR_BATCHES * PAIR_BATCH;
}

/* Sizes are drawn so that small ones are commoner, as in programs. */
static uint64_t sizes(void)
{
    static void *blocks[LIVE_MOST];
    uint32_t state = 1, live = threads > 1 ? (uint32_t)threads : LIVE;
    for (int i = 0; i < REPLACEMENTS; i++) {
        void **slot = &blocks[measure_random(&state) % live];
        give(*slot);
        uint32_t r = measure_random(&state);
        *slot = take(16 + (r >> 8) % (16u << (r & 3) * 2));
    }
    for (uint32_t i = 0; i < live; i++) give(blocks[i]);
    return REPLACEMENTS;
}

/* --- objects left to a later thread ---------------------------------------------------------- */

static struct server {
    uint32_t state;
    void *blocks[SERVED];
} * servers;

static void larson_generation(int index)
{
    struct server *server = &servers[index];
    for (int i = 0; i < GENERATION; i++) {
        void **slot = &server->blocks[measure_random(&server->state) % SERVED];
        give(*slot);
        *slot = take(SERVED_MIN + measure_random(&server->state) % (SERVED_MAX - SERVED_MIN + 1));
    }
}

static void larson_server(int index)
{
    servers[index].state = seed(index);
    for (int i = 0; i < GENERATIONS / threads; i++) on_new_thread(larson_generation, index);
}

static uint64_t larson(void)
{
    servers = calloc((size_t)threads, sizeof *servers);
    measure_need(servers != NULL, "no memory");
    if (counting) tally_add(&asked, (long)(sizeof *servers * (size_t)threads));
    if (counting) tally_add(&usable, (long)malloc_usable_size(servers));
    on_threads(larson_server, threads);
    return (uint64_t)(GENERATIONS / threads) * (uint64_t)threads * GENERATION;
}

static struct heir {
    uint32_t state;
    void *left[STORM_LEFT];
} heirs[THREADS_MAX];

static size_t mixed_size(uint32_t *state)
{
    uint32_t r = measure_random(state), least = 16u << r % 9;
    return least + (r >> 8) % least;
}

static void storm_thread(int index)
{
    struct heir *heir = &heirs[index];
    void *objects[STORM_OBJECTS];
    for (int i = 0; i < STORM_OBJECTS; i++) objects[i] = take(mixed_size(&heir->state));
    for (int i = 0; i < STORM_LEFT; i++) give(heir->left[i]);
    memcpy(heir->left, objects, sizeof heir->left);
    for (int i = STORM_LEFT; i < STORM_OBJECTS; i++) give(objects[i]);
}

static void storm_starter(int index)
{
    int n = STORM / threads;
    heirs[index].state = seed(index);
    for (int i = 0; i < n; i++) {
        if (i == n / 10) mark_tenth();
        on_new_thread(storm_thread, index);
    }
}

static uint64_t storm(void)
{
    on_threads(storm_starter, threads);
    return (uint64_t)(STORM / threads) * (uint64_t)threads * STORM_OBJECTS;
}

/* --- objects passed to other threads --------------------------------------------------------- */

struct batch {
    void *objects[BATCH];
};

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int first, n;
    struct batch batches[QUEUE];
} * queues;

static void queue_put(struct queue *queue, const struct batch *batch)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->n == QUEUE) pthread_cond_wait(&queue->emptied, &queue->lock);
    queue->batches[(queue->first + queue->n++) % QUEUE] = *batch;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static void queue_get(struct queue *queue, struct batch *batch)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->n == 0) pthread_cond_wait(&queue->filled, &queue->lock);
    *batch = queue->batches[queue->first];
    queue->first = (queue->first + 1) % QUEUE;
    queue->n--;
    pthread_cond_signal(&queue->emptied);
    pthread_mutex_unlock(&queue->lock);
}

static int batches_each(void) { return PASSED / BATCH / (threads / 2); }

static void produce(int index)
{
    uint32_t state = seed(index);
    struct batch batch;
    for (int i = 0; i < batches_each(); i++) {
        if (i == batches_each() / 10) mark_tenth();
        for (int k = 0; k < BATCH; k++) batch.objects[k] = take(16 + measure_random(&state) % 241);
        queue_put(&queues[index / 2], &batch);
    }
}

static void consume(int index)
{
    struct batch batch;
    for (int i = 0; i < batches_each(); i++) {
        queue_get(&queues[index / 2], &batch);
        for (int k = 0; k < BATCH; k++) give(batch.objects[k]);
    }
}

static void prodcons_thread(int index) { (index % 2 == 0 ? produce : consume)(index); }

static uint64_t prodcons(void)
{
    measure_need(threads % 2 == 0, "an even number of threads");
    queues = calloc((size_t)threads / 2, sizeof *queues);
    measure_need(queues != NULL, "no memory");
    for (int i = 0; i < threads / 2; i++) {
        pthread_mutex_init(&queues[i].lock, NULL);
        pthread_cond_init(&queues[i].filled, NULL);
        pthread_cond_init(&queues[i].emptied, NULL);
    }
    on_threads(prodcons_thread, threads);
    return (uint64_t)batches_each() * BATCH * (uint64_t)(threads / 2);
}

static void bleeding_thread(int index)
{
    static _Atomic(void *) table[TABLE];
    uint32_t state = seed(index);
    for (int i = 0; i < EXCHANGES / threads; i++) {
        void *object = take(mixed_size(&state));
        give(atomic_exchange(&table[measure_random(&state) % TABLE], object));
    }
}

static uint64_t bleeding(void)
{
    on_threads(bleeding_thread, threads);
    return EXCHANGES;
}

/* --- false sharing --------------------------------------------------------------------------- */

static void *gifts[THREADS_MAX];

static void write_thread(int index)
{
    give(gifts[index]);
    for (int i = 0; i < SHARED_OBJECTS / threads; i++) {
        volatile uint64_t *object = take(OBJECT_SIZE);
        for (int k = 0; k < SHARED_WRITES; k++) *object += 1;
        *object = OBJECT_SIZE;
        __asm__("" : "+r"(object)); /* or gcc 14 warns of reads behind it, for a size that it never has */
        give((void *)object);
    }
}

static uint64_t thrash(void)
{
    on_threads(write_thread, threads);
    return (uint64_t)(SHARED_OBJECTS / threads) * (uint64_t)threads * SHARED_WRITES;
}

static uint64_t scratch(void)
{
    for (int i = 0; i < threads; i++) gifts[i] = take(OBJECT_SIZE);
    return thrash();
}

static uint64_t barnes(void) { return barnes_on(threads, brief); }

/* --- what it was ----------------------------------------------------------------------------- */

static void print_reap(void)
{
    int (*fill)(struct hoard_stats *) = (int (*)(struct hoard_stats *))dlsym(RTLD_DEFAULT, "hoard_stats");
    struct hoard_stats stats;
    if (fill == NULL || fill(&stats) != 0) return;
    measure_print_named("held", stats.peak_held_bytes);
    measure_print_named("slow_mallocs", stats.slow_mallocs);
    measure_print_named("slow_frees", stats.slow_frees);
    measure_print_named("remote_frees", stats.remote_frees);
    measure_print_named("transfers", stats.transfers);
}

static void run(uint64_t (*workload)(void))
{
    long before = measure_resident();
    uint64_t start = measure_now(), operations = workload();
    measure_print(measure_now() - start, operations);
    measure_print_named("before", before);
    if (resident_early != 0) measure_print_named("grown", measure_resident() - resident_early);
    if (use_sum != 0) measure_print_named("sum", (long long)(use_sum % 1000000007));
    if (barnes_sum != 0) measure_print_named("sum", (long long)(barnes_sum % 1000000007));
    if (counting) measure_print_named("asked", atomic_load(&asked.most));
    if (counting) measure_print_named("usable", atomic_load(&usable.most));
    print_reap();
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t (*workload)(void);
} workloads[] = {
    {"threadtest", threadtest}, {"larson", larson}, {"shbench", shbench}, {"prodcons", prodcons},
    {"bleeding", bleeding},     {"storm", storm},   {"scratch", scratch}, {"thrash", thrash},
    {"barnes", barnes},         {"pairs", pairs},   {"batch", batch},     {"sizes", sizes},
};
/* clang-format on */

int main(int argc, char **argv)
{
    threads = argc > 2 ? atoi(argv[2]) : 1;
    counting = argc > 3 && strcmp(argv[3], "count") == 0;
    brief = argc > 3 && strcmp(argv[3], "short") == 0;
    bool is_sizes = argc > 1 && strcmp(argv[1], "sizes") == 0;
    measure_need(threads > 0 && threads <= (is_sizes ? LIVE_MOST : THREADS_MAX), "1 to 256 threads");
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            run(workloads[i].workload);
            return 0;
        }
    measure_need(0, "usage: threads WORKLOAD [THREADS [count|short]]");
}
