/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of threads on a machine that has other work, for whichever malloc is preloaded, for a fixed time:
 * busy WORKLOAD THREADS SECONDS [LOOPS [CPUS]]. LOOPS other processes do nothing but turn, dealt to the CPUs
 * in turn; all of it stays on the first CPUS of them.
 *
 *     mixed       sizes of 8 B to 128 KiB, half of them up to 128 B, mixed lifetimes, a tenth freed by others
 *     phases      the same, and each thread frees all that it has from time to time
 *     small       as mixed, with 8 to 256 B
 *     large       the same with 64 KiB to 4 MiB, a word of each page written
 *     huge        the same with 4 to 16 MiB
 *     reaps       each thread makes reaps of objects as mixed has them, below a root of its own, and destroys
 *                 them; status 77 where there are no reaps
 *
 * An object is written whole (large and huge: each page) and read again before it is freed: what is lost or
 * shared ends the run. An operation is a malloc and its free; of reaps, a reap. Each single call is timed and
 * told as the median, the 99.9th percentile, the worst, and the number beyond 10 ms: a call in which the
 * thread was preempted is among these, with every malloc. `sleeps` is how often threads gave up the CPU by
 * themselves: in malloc, or in the kernel, for memory.
 */
#include "calls.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* clang-format off */
enum {
    THREADS_MAX = 256, LOOPS_MAX = 1024, PAGE = 4096,
    SMALL = 128,                   /* bytes, of the small half of mixed */
    EXCHANGED = 256,               /* objects that wait for another thread to free them */
    REAP_OBJECTS = 40
};
/* clang-format on */

/* --- a thread -------------------------------------------------------------------------------- */

struct worker {
    struct calls began, ended; /* malloc and free, or reapCreate and reapDestroy */
    uint64_t operations, sleeps;
    uint32_t state;
    void **objects;
};

static struct worker *workers;
static int threads;
static atomic_bool over;
static _Atomic uint64_t last_end; /* when the last thread saw that it is over */

static inline bool goes_on(void) { return !atomic_load_explicit(&over, memory_order_relaxed); }

static inline void *take(struct worker *worker, size_t size)
{
    uint64_t start = tick();
    void *object = malloc(size);
    calls_add(&worker->began, start);
    measure_need(object != NULL, "no memory");
    return object;
}

static inline void give(struct worker *worker, void *object)
{
    if (object == NULL) return;
    uint64_t start = tick();
    free(object);
    calls_add(&worker->ended, start);
    worker->operations++;
}

/* --- objects of which each word or page is known --------------------------------------------- */

struct sizes {
    size_t least, most;
    int objects; /* live at once, of all threads together */
    bool small_half, pages_only;
};

static const struct sizes *sizes;
static _Atomic(uint64_t *) exchanged[EXCHANGED];

/* All magnitudes alike; where half of them are small, the others uniform, so that most bytes are in spans. */
static size_t size_of(uint32_t *state)
{
    double least = (double)sizes->least, most = (double)sizes->most;
    double part = measure_random(state) / 4294967296.0;
    if (sizes->small_half && measure_random(state) % 2 == 0) return (size_t)(least + part * (most - least));
    if (sizes->small_half) most = SMALL;
    return (size_t)(least * exp(part * log(most / least)));
}

static size_t stride(void) { return sizes->pages_only ? PAGE / sizeof(uint64_t) : 1; }

/* The first word is the size, the others say whose they are. */
static uint64_t *fill(uint64_t *object, size_t size)
{
    object[0] = size;
    for (size_t i = stride(); i < size / sizeof *object; i += stride()) object[i] = (uintptr_t)object ^ size;
    return object;
}

static void check(const uint64_t *object)
{
    uint64_t size = object[0], other = 0;
    measure_need(size >= sizes->least && size <= sizes->most, "an object's size was written to");
    for (size_t i = stride(); i < size / sizeof *object; i += stride())
        other |= object[i] ^ (uintptr_t)object ^ size;
    measure_need(other == 0, "an object was written to");
}

static void give_checked(struct worker *worker, uint64_t *object)
{
    if (object == NULL) return;
    check(object);
    object[0] = 0; /* who has the same memory finds no size */
    give(worker, object);
}

/* One in ten goes to another thread, by way of a table. Of what stays three in four are replaced soon. */
static void replace_one(struct worker *worker, int n)
{
    int few = n / 8 > 0 ? n / 8 : 1;
    size_t size = size_of(&worker->state);
    uint64_t *object = fill(take(worker, size), size);
    uint32_t r = measure_random(&worker->state);
    if (r % 10 == 0) {
        give_checked(worker, atomic_exchange(&exchanged[(r >> 8) % EXCHANGED], object));
    } else {
        void **slot = &worker->objects[(r >> 8) % (uint32_t)(r % 4 == 0 ? n : few)];
        give_checked(worker, *slot);
        *slot = object;
    }
}

static void churn_thread(struct worker *worker)
{
    while (goes_on()) replace_one(worker, sizes->objects / threads);
}

static void phases_thread(struct worker *worker)
{
    int n = sizes->objects / threads;
    while (goes_on()) {
        for (int i = 0; i < 2 * n && goes_on(); i++) replace_one(worker, n);
        for (int i = 0; i < n; i++) {
            give_checked(worker, worker->objects[i]);
            worker->objects[i] = NULL;
        }
    }
}

/* --- reaps ----------------------------------------------------------------------------------- */

static void (*create)(void **reap, void **parent);
static void (*destroy)(void **reap);
static void *(*reap_malloc)(void **reap, size_t size);

static bool reaps_found(void)
{
    create = (void (*)(void **, void **))dlsym(RTLD_DEFAULT, "reapCreate");
    destroy = (void (*)(void **))dlsym(RTLD_DEFAULT, "reapDestroy");
    reap_malloc = (void *(*)(void **, size_t))dlsym(RTLD_DEFAULT, "reapMalloc");
    return create != NULL && destroy != NULL && reap_malloc != NULL;
}

static void destroy_timed(struct worker *worker, void **reap)
{
    uint64_t start = tick();
    destroy(reap);
    calls_add(&worker->ended, start);
    worker->operations++;
}

/* Sizes as of mixed; the last eight reaps live at once. */
static void reaps_thread(struct worker *worker)
{
    void *root, *live[8] = {0};
    create(&root, NULL);
    measure_need(root != NULL, "no memory");
    for (unsigned i = 0; goes_on(); i++) {
        void **reap = &live[i % 8];
        if (*reap != NULL) destroy_timed(worker, reap);
        uint64_t start = tick();
        create(reap, &root);
        calls_add(&worker->began, start);
        measure_need(*reap != NULL, "no memory");
        for (int k = 0; k < REAP_OBJECTS; k++) {
            size_t size = size_of(&worker->state);
            measure_touch(reap_malloc(reap, size));
        }
    }
    destroy(&root);
}

/* --- a run ----------------------------------------------------------------------------------- */

static const struct workload {
    const char *name;
    void (*run)(struct worker *worker);
    struct sizes sizes;
} workloads[] = {
    {"mixed", churn_thread, {8, 128 << 10, 8192, true, false}},
    {"phases", phases_thread, {8, 128 << 10, 8192, true, false}},
    {"small", churn_thread, {8, 256, 65536, false, false}},
    {"large", churn_thread, {64 << 10, 4 << 20, 64, false, true}},
    {"huge", churn_thread, {(4 << 20) + 1, 16 << 20, 16, false, true}},
    {"reaps", reaps_thread, {8, 128 << 10, 0, true, false}},
};

static const struct workload *workload;
static pthread_barrier_t all_there;

static void mark_end(void)
{
    uint64_t now = measure_now(), last = atomic_load(&last_end);
    while (now > last && !atomic_compare_exchange_weak(&last_end, &last, now)) {
    }
}

static void *run_thread(void *worker_)
{
    struct worker *worker = worker_;
    struct rusage before, after;
    pthread_barrier_wait(&all_there);
    getrusage(RUSAGE_THREAD, &before);
    workload->run(worker);
    mark_end();
    getrusage(RUSAGE_THREAD, &after);
    worker->sleeps = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
    return NULL;
}

/* Threads' own memory is mapped: it is no part of what malloc does. */
static void *zeroed(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    measure_need(memory != NULL, "no memory");
    return memory;
}

static void run_threads(double seconds)
{
    pthread_t ids[THREADS_MAX];
    pthread_barrier_init(&all_there, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        int n = sizes->objects / threads + 1;
        workers[i].state = 2463534242u + (uint32_t)i * 2654435761u;
        workers[i].objects = zeroed((size_t)n, sizeof(void *));
        measure_need(pthread_create(&ids[i], NULL, run_thread, &workers[i]) == 0, "no thread");
    }
    pthread_barrier_wait(&all_there);
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
    atomic_store(&over, true);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}

static void run(double seconds)
{
    static struct calls began, ended;
    uint64_t start = measure_now(), start_tick = tick(), used = measure_cpu();
    run_threads(seconds);
    double ns_a_tick = (double)(measure_now() - start) / (double)(tick() - start_tick);
    used = measure_cpu() - used;
    uint64_t operations = 0, sleeps = 0;
    for (int i = 0; i < threads; i++) {
        calls_sum(&began, &workers[i].began);
        calls_sum(&ended, &workers[i].ended);
        operations += workers[i].operations;
        sleeps += workers[i].sleeps;
    }
    measure_need(operations > 0, "no operation was done");
    measure_print(atomic_load(&last_end) - start, operations);
    calls_print("malloc", &began, ns_a_tick);
    calls_print("free", &ended, ns_a_tick);
    measure_print_named("used", (long long)used);
    measure_print_named("sleeps", (long long)sleeps);
}

/* --- the others ------------------------------------------------------------------------------ */

static cpu_set_t allowed;

static int allowed_cpu(int number)
{
    for (int cpu = 0, n = number % CPU_COUNT(&allowed);; cpu++)
        if (CPU_ISSET(cpu, &allowed) && n-- == 0) return cpu;
}

static void stay_on(int cpus)
{
    cpu_set_t few;
    CPU_ZERO(&few);
    for (int i = 0; i < cpus && i < CPU_COUNT(&allowed); i++) CPU_SET(allowed_cpu(i), &few);
    measure_need(sched_setaffinity(0, sizeof few, &few) == 0, "these CPUs cannot be had");
    allowed = few;
}

/* They end with their parent, however it ends. */
static pid_t start_loop(int cpu)
{
    pid_t parent = getpid(), pid = fork();
    measure_need(pid >= 0, "no process");
    if (pid != 0) return pid;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    for (volatile unsigned turns = 0;; turns++) {
    }
}

int main(int argc, char **argv)
{
    static pid_t loops[LOOPS_MAX];
    measure_need(argc > 3, "usage: busy WORKLOAD THREADS SECONDS [LOOPS [CPUS]]");
    int n = argc > 4 ? atoi(argv[4]) : 0;
    threads = atoi(argv[2]);
    measure_need(threads > 0 && threads <= THREADS_MAX, "1 to 256 threads");
    measure_need(n >= 0 && n <= LOOPS_MAX, "0 to 1024 loops");
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) workload = &workloads[i];
    measure_need(workload != NULL, "no such workload");
    sizes = &workload->sizes;
    if (workload->run == reaps_thread && !reaps_found()) return 77;
    workers = zeroed((size_t)threads, sizeof *workers);
    measure_need(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "no affinity");
    if (argc > 5) stay_on(atoi(argv[5]));
    for (int i = 0; i < n; i++) loops[i] = start_loop(allowed_cpu(i));
    run(atof(argv[3]));
    for (int i = 0; i < n; i++) kill(loops[i], SIGKILL);
    for (int i = 0; i < n; i++) waitpid(loops[i], NULL, 0);
    return 0;
}
