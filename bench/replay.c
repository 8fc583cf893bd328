/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: does again what a trace of libreap-trace has: replay [-s SECONDS] TRACE [EARLY]. Prints
 * nanoseconds and operations, then CPU time, KiB that the process grew by at its peak, KiB that the trace has
 * at once, and rounds.
 *
 * One replay may be short, and the machine have other work: so it is done again and again, each time by a new
 * process, which is this program with the ops that the first one has read, until SECONDS are over (3, and
 * ten rounds at least; 0: one round). CPU time is without what threads spend in waiting for others, and of
 * each thread's ops in a window the least of all rounds, added up: some round did it undisturbed. Nanoseconds
 * are those of the shortest round, and growth is the greatest.
 *
 * With EARLY, which reap-analyse --early writes, the objects that it names are freed after their last use:
 * what a free at these places would save.
 *
 * A program for each library of regions: replay has none, and frees each object when its pool ends, so it
 * measures the malloc that is preloaded; replay_reap has reaps, replay_apr APR's pools, which free no object
 * before their end. What is not in a pool is malloc's with all of them.
 *
 * Objects are written whole, each with a word of its own, and read whole before they end, or are resized: a
 * word that is another ends the program. Threads are the trace's, in its order (replay_ops.h).
 */
#include "replay_ops.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "measure.h"

#if defined(REPLAY_REAP)
#include <reap.h>
typedef void *region;
static region region_new(region parent)
{
    region made;
    reapCreate(&made, parent ? &parent : NULL);
    return made;
}
static void *region_get(region pool, size_t size) { return reapMalloc(&pool, size); }
static void *region_resize(region pool, void *object, size_t old, size_t size)
{
    (void)old;
    return reapRealloc(&pool, object, size);
}
static void region_free(region pool, void *object) { reapFree(&pool, object); }
static void region_clear(region pool) { reapFreeAll(&pool); }
static void region_end(region pool) { reapDestroy(&pool); }
#define HAS_POOLS true
#elif defined(REPLAY_APR)
#include <apr_general.h>
#include <apr_pools.h>
typedef apr_pool_t *region;
static region region_new(region parent)
{
    region made = NULL;
    apr_pool_create(&made, parent);
    return made;
}
static void *region_get(region pool, size_t size) { return apr_palloc(pool, size); }
static void *region_resize(region pool, void *object, size_t old, size_t size)
{
    return memcpy(apr_palloc(pool, size), object, old < size ? old : size);
}
static void region_free(region pool, void *object) { (void)pool, (void)object; }
static void region_clear(region pool) { apr_pool_clear(pool); }
static void region_end(region pool) { apr_pool_destroy(pool); }
#define HAS_POOLS true
#else
typedef void *region;
static region region_new(region parent) { return parent; }
static void *region_get(region pool, size_t size) { return (void)pool, malloc(size); }
static void *region_resize(region pool, void *object, size_t old, size_t size)
{
    return (void)pool, (void)old, realloc(object, size);
}
static void region_free(region pool, void *object) { (void)pool, free(object); }
static void region_clear(region pool) { (void)pool; }
static void region_end(region pool) { (void)pool; }
#define HAS_POOLS false
#endif

struct object {
    char *at;
    size_t size;
};

/* Ops done by a thread: those before `done` in all, of its own. */
struct runner {
    _Alignas(64) _Atomic uint64_t done;
    uint64_t waited_ns, window_ns; /* of CPU, in waiting; when the window began, without waiting */
    pthread_t thread;
    unsigned number;
};

static struct replay *replay;
static struct object *objects;
static region *pools;
static struct runner *runners;
static _Atomic bool may_begin;
static _Atomic uint32_t *left; /* ops that are not done, by window */

/* --- objects ----------------------------------------------------------------------------------------- */

static uint64_t word_of(uint32_t number) { return (number + 1) * 0x9e3779b97f4a7c15u; }

static void write_whole(char *at, size_t size, uint64_t word)
{
    size_t i = 0;
    for (; i + sizeof word <= size; i += sizeof word) memcpy(at + i, &word, sizeof word);
    memcpy(at + i, &word, size - i);
}

static void read_whole(const char *at, size_t size, uint64_t word)
{
    uint64_t wrong = 0, here;
    size_t i = 0;
    for (; i + sizeof word <= size; i += sizeof word) {
        memcpy(&here, at + i, sizeof here);
        wrong |= here ^ word;
    }
    measure_need(wrong == 0 && memcmp(at + i, &word, size - i) == 0,
                 "an object has lost what was written to it");
}

static void begin(const struct replay_op *op)
{
    struct object *object = &objects[op->number];
    object->at = op->pool ? region_get(pools[op->pool], op->size) : malloc(op->size);
    object->size = op->size;
    measure_need(object->at != NULL || op->size == 0, "no memory");
    if (object->at) write_whole(object->at, op->size, word_of(op->number));
}

static void end(const struct replay_op *op)
{
    struct object *object = &objects[op->number];
    if (object->at) read_whole(object->at, object->size, word_of(op->number));
    if (op->kind == REPLAY_FREE && op->pool && object->at) region_free(pools[op->pool], object->at);
    if (op->kind == REPLAY_FREE && !op->pool) free(object->at);
    object->at = NULL;
}

static void resize(const struct replay_op *op)
{
    struct object *object = &objects[op->number];
    size_t kept = object->size < op->size ? object->size : op->size, size = op->size ? op->size : 1;
    object->at =
        op->pool ? region_resize(pools[op->pool], object->at, object->size, size) : realloc(object->at, size);
    measure_need(object->at != NULL, "no memory");
    read_whole(object->at, kept / 8 * 8, word_of(op->number));
    write_whole(object->at, op->size, word_of(op->number));
    object->size = op->size;
}

static void perform(const struct replay_op *op)
{
    switch (op->kind) {
    case REPLAY_NEW: begin(op); break;
    case REPLAY_FREE:
    case REPLAY_READ: end(op); break;
    case REPLAY_RESIZE: resize(op); break;
    case REPLAY_POOL: pools[op->number] = region_new(op->pool ? pools[op->pool] : NULL); break;
    case REPLAY_POOL_CLEAR: region_clear(pools[op->number]); break;
    default: region_end(pools[op->number]); break;
    }
}

/* --- threads ------------------------------------------------------------------------------------------- */

static uint64_t thread_cpu(void) { return measure_clock(CLOCK_THREAD_CPUTIME_ID); }

static void wait_for(struct runner *me, uint64_t after)
{
    if (after == 0) return;
    const struct runner *other = &runners[replay->ops[after - 1].thread];
    if (atomic_load_explicit(&other->done, memory_order_acquire) >= after) return;
    uint64_t start = thread_cpu();
    for (int i = 0; atomic_load_explicit(&other->done, memory_order_acquire) < after; i++)
        if (i > 100) sched_yield();
    me->waited_ns += thread_cpu() - start;
}

/* The window before the last one is over. */
static void wait_for_window(struct runner *me, uint64_t window)
{
    uint64_t start = thread_cpu();
    for (int i = 0; window >= 2 && atomic_load_explicit(&left[window - 2], memory_order_acquire) > 0; i++)
        if (i > 100) sched_yield();
    me->waited_ns += thread_cpu() - start;
}

/* A window's ops of this thread are done. */
static void end_window(struct runner *me, uint64_t window)
{
    uint64_t *least = replay_least(replay, window, me->number), now = thread_cpu() - me->waited_ns;
    uint64_t took = now - me->window_ns + 1; /* 0: no round has done it */
    if (*least == 0 || took < *least) *least = took;
    me->window_ns = thread_cpu() - me->waited_ns;
}

static void *run(void *runner_)
{
    struct runner *runner = runner_;
    uint64_t window = 0, i = replay->first[runner->number];
    uint32_t done = 0;
    while (!atomic_load(&may_begin)) sched_yield();
    runner->window_ns = thread_cpu();
    for (const struct replay_op *op = &replay->ops[i]; i < replay->n; i += op->next, op = &replay->ops[i]) {
        if (i / REPLAY_WINDOW != window) {
            end_window(runner, window);
            atomic_fetch_sub(&left[window], done);
            done = 0;
            window = i / REPLAY_WINDOW;
            wait_for_window(runner, window);
        }
        wait_for(runner, op->after[0]);
        wait_for(runner, op->after[1]);
        perform(op);
        done++;
        atomic_store_explicit(&runner->done, i + 1, memory_order_release);
    }
    end_window(runner, window);
    atomic_fetch_sub(&left[window], done);
    return NULL;
}

static void *table(size_t n, size_t size)
{
    void *at =
        mmap(NULL, n * size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    measure_need(at != MAP_FAILED, "no memory for a table");
    return at;
}

static void prepare(void)
{
    uint64_t sum = 0;
    objects = table(replay->n_objects + 1, sizeof *objects);
    pools = table(replay->n_pools + 1, sizeof *pools);
    runners = table(replay->n_threads, sizeof *runners);
    left = table(replay->n / REPLAY_WINDOW + 1, sizeof *left);
    for (uint64_t i = 0; i < replay->n; i++) {
        left[i / REPLAY_WINDOW]++;
        sum += replay->ops[i].kind; /* and each page is there */
    }
    measure_need(sum < UINT64_MAX, "ops");
    for (unsigned i = 1; i < replay->n_threads; i++) {
        runners[i].number = i;
        measure_need(pthread_create(&runners[i].thread, NULL, run, &runners[i]) == 0, "no thread");
    }
}

/* KiB at the most since the last reset. */
static long peak(bool resets)
{
    char line[256];
    long kib = 0;
    int file = open(resets ? "/proc/self/clear_refs" : "/proc/self/status", resets ? O_WRONLY : O_RDONLY);
    if (resets) measure_need(write(file, "5", 1) == 1, "/proc/self/clear_refs");
    char text[4096];
    ssize_t n = resets ? 0 : read(file, text, sizeof text - 1);
    close(file);
    text[n > 0 ? n : 0] = '\0';
    const char *at = n > 0 ? strstr(text, "VmHWM:") : NULL;
    if (at && sscanf(at, "VmHWM: %ld%200s", &kib, line) < 1) kib = 0;
    return kib;
}

/* --- rounds ------------------------------------------------------------------------------------------- */

/* The work of a process: one replay. */
static int one_round(void)
{
    struct replay_round *round = &replay->round;
#ifdef REPLAY_APR
    apr_initialize();
#endif
    prepare();
    long before = measure_resident();
    peak(true);
    uint64_t started = measure_now();
    atomic_store(&may_begin, true);
    run(&runners[0]);
    for (unsigned i = 1; i < replay->n_threads; i++) pthread_join(runners[i].thread, NULL);
    round->ns = measure_now() - started;
    long most = peak(false);
    round->grown_kib = most > before ? most - before : 0;
    round->is_done = true;
    return 0;
}

static struct replay_round next_round(const char *program)
{
    char file[16];
    int status = 0;
    snprintf(file, sizeof file, "%d", replay->file);
    replay->round.is_done = false;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", program, "--round", file, (char *)NULL);
        _exit(1);
    }
    measure_need(child > 0 && waitpid(child, &status, 0) == child, "no process for a round");
    if (status != 0 || !replay->round.is_done) exit(1); /* it has said why */
    return replay->round;
}

static uint64_t cpu_of_all(void)
{
    uint64_t sum = 0;
    for (uint64_t window = 0; window <= replay->n / REPLAY_WINDOW; window++)
        for (unsigned thread = 0; thread < replay->n_threads; thread++)
            sum += *replay_least(replay, window, thread);
    return sum;
}

enum { LEAST_ROUNDS = 10 };

int main(int argc, char **argv)
{
    bool has_seconds = argc > 2 && strcmp(argv[1], "-s") == 0;
    double seconds = has_seconds ? atof(argv[2]) : 3;
    char **rest = argv + (has_seconds ? 3 : 1);
    if (argc == 3 && strcmp(argv[1], "--round") == 0) {
        replay = replay_attach(atoi(argv[2]));
        return replay ? one_round() : 1;
    }
    measure_need(rest[0] && (!rest[1] || !rest[2]), "replay [-s SECONDS] TRACE [EARLY]");
    replay = replay_load(rest[0], HAS_POOLS, rest[1]);
    if (!replay) return 1;
    uint64_t started = measure_now();
    struct replay_round best = next_round(argv[0]);
    int n = 1;
    for (; seconds > 0 && (n < LEAST_ROUNDS || (double)(measure_now() - started) / 1e9 < seconds); n++) {
        struct replay_round round = next_round(argv[0]);
        if (round.ns < best.ns) best.ns = round.ns;
        if (round.grown_kib > best.grown_kib) best.grown_kib = round.grown_kib;
    }
    measure_print(best.ns, replay->n);
    measure_print_named("cpu_ns", (long long)cpu_of_all());
    measure_print_named("grown_kib", best.grown_kib);
    measure_print_named("asked_kib", (long long)(replay->most_bytes / 1024));
    measure_print_named("early", (long long)replay->n_early);
    measure_print_named("threads", replay->n_threads);
    measure_print_named("rounds", n);
    return 0;
}
