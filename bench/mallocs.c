/* Workloads on malloc and free, for whichever malloc is preloaded: mallocs WORKLOAD [THREADS].
 *
 *     pairs        malloc and free of 64 bytes, one after the other
 *     batch        500 blocks of 64 bytes, then their frees, first in first out
 *     sizes        a thousand live blocks of 16 to 1024 bytes, a random one replaced each time
 *     threadtest   Hoard's: each thread allocates its share of 100,000 objects of 8 bytes, frees them
 *     larson       servers: each thread replaces random blocks of an array that it then leaves to a
 *                  thread that it starts, so blocks are freed by others than who made them
 *
 * An operation is a malloc and its free.
 */
#include "measure.h"

#include <pthread.h>
#include <string.h>

enum {
    PAIRS = 20000000, PAIR_SIZE = 64,
    BATCH = 500, BATCHES = 20000,
    LIVE = 1000, REPLACEMENTS = 5000000,
    OBJECTS = 100000, OBJECT_SIZE = 8, ROUNDS = 60,
    SERVED = 1000, SERVED_MIN = 10, SERVED_MAX = 500, GENERATIONS = 40, GENERATION = 50000,
    THREADS_MAX = 64
};

static int threads = 1;

static uint64_t pairs(void)
{
    for (int i = 0; i < PAIRS; i++) free(measure_touch(malloc(PAIR_SIZE)));
    return PAIRS;
}

static uint64_t batch(void)
{
    static void *blocks[BATCH];
    for (int round = 0; round < BATCHES; round++) {
        for (int i = 0; i < BATCH; i++) blocks[i] = measure_touch(malloc(PAIR_SIZE));
        for (int i = 0; i < BATCH; i++) free(blocks[i]);
    }
    return (uint64_t)BATCHES * BATCH;
}

/* Sizes are drawn so that small ones are commoner, as in programs. */
static size_t draw_size(uint32_t *state)
{
    uint32_t r = measure_random(state);
    return 16 + (r >> 8) % (16u << (r & 3) * 2);
}

static uint64_t sizes(void)
{
    static void *blocks[LIVE];
    uint32_t state = 1;
    for (int i = 0; i < REPLACEMENTS; i++) {
        void **slot = &blocks[measure_random(&state) % LIVE];
        free(*slot);
        *slot = measure_touch(malloc(draw_size(&state)));
    }
    for (int i = 0; i < LIVE; i++) free(blocks[i]);
    return REPLACEMENTS;
}

static void *threadtest_thread(void *unused)
{
    int n = OBJECTS / threads;
    void **objects = malloc((size_t)n * sizeof *objects);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < n; i++) objects[i] = measure_touch(malloc(OBJECT_SIZE));
        for (int i = 0; i < n; i++) free(objects[i]);
    }
    free(objects);
    return unused;
}

struct server {
    pthread_t next; /* the thread that inherits the array */
    uint32_t state;
    int generations;
    void *blocks[SERVED];
};

static void *larson_thread(void *server_)
{
    struct server *server = server_;
    for (int i = 0; i < GENERATION; i++) {
        void **slot = &server->blocks[measure_random(&server->state) % SERVED];
        size_t size = SERVED_MIN + measure_random(&server->state) % (SERVED_MAX - SERVED_MIN);
        free(*slot);
        *slot = measure_touch(malloc(size));
    }
    if (--server->generations == 0) {
        for (int i = 0; i < SERVED; i++) free(server->blocks[i]);
        free(server);
        return NULL;
    }
    /* The successor outlives this thread; the last one's end is the whole chain's. */
    pthread_t next;
    measure_need(pthread_create(&next, NULL, larson_thread, server) == 0, "no thread");
    void *rest;
    pthread_join(next, &rest);
    return rest;
}

static void *larson_server(void *seed)
{
    struct server *server = calloc(1, sizeof *server);
    server->state = (uint32_t)(size_t)seed + 1;
    server->generations = GENERATIONS;
    return larson_thread(server);
}

static uint64_t on_threads(void *(*run)(void *), uint64_t operations)
{
    pthread_t ids[THREADS_MAX];
    for (size_t i = 0; i < (size_t)threads; i++)
        measure_need(pthread_create(&ids[i], NULL, run, (void *)i) == 0, "no thread");
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    return operations;
}

static uint64_t threadtest(void)
{
    return on_threads(threadtest_thread, (uint64_t)(OBJECTS / threads) * (uint64_t)threads * ROUNDS);
}

static uint64_t larson(void)
{
    return on_threads(larson_server, (uint64_t)threads * GENERATIONS * GENERATION);
}

static const struct {
    const char *name;
    uint64_t (*run)(void);
} workloads[] = {
    {"pairs", pairs}, {"batch", batch}, {"sizes", sizes}, {"threadtest", threadtest}, {"larson", larson},
};

int main(int argc, char **argv)
{
    if (argc > 2) threads = atoi(argv[2]);
    measure_need(threads > 0 && threads <= THREADS_MAX, "1 to 64 threads");
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            uint64_t start = measure_now(), operations = workloads[i].run();
            measure_print(measure_now() - start, operations);
            return 0;
        }
    measure_need(0, "usage: mallocs pairs|batch|sizes|threadtest|larson [THREADS]");
}
