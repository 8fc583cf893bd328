/* SPDX-License-Identifier: Apache-2.0 */
/* check_faults.c: the n-th call to the OS fails, for every n until none does, in a tour through every public
 * call of hoard.h and reap.h; and all from the n-th on, and those for much or for little memory alone.
 *
 * Each call then gives what it should, or says NULL and ENOMEM, and only if something has failed since it was
 * asked; contents stay, reaps and heaps are valid, everything comes back once all is freed, and with no more
 * failures all works again. Once in processes that start so, and once in ones that have started. */
#include "support/check_reap.h"
#include "support/resident.h"

#include "faults.h"
#include "heap/heap.h"

#include <semaphore.h>

static FILE *nowhere;

/* --- what was asked for ------------------------------------------------------------------------------- */

enum { HELD_MAX = 1500 };
static __thread struct {
    unsigned char *at;
    size_t size;
} held[HELD_MAX];
static __thread unsigned held_count;
static __thread unsigned long met; /* failures, when the last call was made */
static bool tells;                 /* failures may show */
static bool shares;                /* also those that another thread has met */

static unsigned char mark_of(unsigned i) { return (unsigned char)(i * 7 + 1); }

/* Bytes to the next one that matters: all pages would be much to touch. */
enum { STEP = 65536 };

static void write_mark(unsigned i)
{
    unsigned char *at = held[i].at;
    size_t size = held[i].size;
    for (size_t k = 0; k < size; k += STEP) at[k] = mark_of(i);
    if (size) memset(at, mark_of(i), size < 16 ? size : 16);
    if (size) at[size - 1] = mark_of(i);
}

static bool has_mark(unsigned i, size_t size)
{
    const unsigned char *at = held[i].at;
    for (size_t k = 0; k < size; k += STEP)
        if (at[k] != mark_of(i)) return false;
    return size == 0 || all_bytes(at, size < 16 ? size : 16, mark_of(i));
}

/* Before each call. */
static void ask(void)
{
    met = faults_injected();
    errno = 0;
}

/* A call has said no, or not: there must be a reason. */
static bool said_no(bool no, const char *call)
{
    if (!no) return false;
    expect(errno == ENOMEM, call);
    if (!tells || (!shares && faults_injected() == met)) expect(false, "no, though nothing has failed");
    return true;
}

/* The number of what was got, or -1. */
static int keep(void *got, size_t size, const char *call)
{
    if (said_no(got == NULL, call)) return -1;
    expect((uintptr_t)got % 16 == 0 && held_count < HELD_MAX, "not aligned");
    held[held_count].at = got;
    held[held_count].size = size;
    write_mark(held_count);
    return (int)held_count++;
}

static void keep_zeroed(void *got, size_t size, const char *call)
{
    const unsigned char *bytes = got;
    for (size_t k = 0; got != NULL && k < size; k += STEP)
        expect(all_bytes(bytes + k, size - k < 1000 ? size - k : 1000, 0), "not zero");
    keep(got, size, call);
}

static void resized(int i, void *got, size_t size, const char *call)
{
    if (said_no(got == NULL, call)) {
        expect(has_mark((unsigned)i, held[i].size), "a resize that failed has changed what was there");
        return;
    }
    held[i].at = got;
    expect(has_mark((unsigned)i, size < held[i].size ? size : held[i].size), "a resize has lost contents");
    held[i].size = size;
    write_mark((unsigned)i);
}

static void check_held(unsigned from)
{
    for (unsigned i = from; i < held_count; i++)
        if (held[i].at != NULL) expect(has_mark(i, held[i].size), "contents are lost");
}

/* --- hoard.h ------------------------------------------------------------------------------------------ */

static const size_t sizes[] = {1,     100,    1000,   5000,    20000,   32768,   32769,
                               70000, 300000, 900000, 4194304, 4200000, 34000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void let_go(unsigned from, unsigned step)
{
    for (unsigned i = from; i < held_count; i += step) {
        errno = 12345;
        hoard_free(held[i].at);
        expect(errno == 12345, "free has changed errno");
        held[i].at = NULL;
    }
}

static void *aligned(unsigned i, size_t size)
{
    void *block = NULL;
    if (i % 2 != 0) return hoard_aligned_alloc((size_t)64 << i, size);
    int error = hoard_posix_memalign(&block, (size_t)64 << i, size);
    errno = error;
    return error == 0 ? block : NULL;
}

static void tour_sizes(void)
{
    for (unsigned i = 0; i < SIZES; i++) {
        ask(), keep(hoard_malloc(sizes[i]), sizes[i], "hoard_malloc");
        if (sizes[i] > 5000000) continue;
        ask(), keep_zeroed(hoard_calloc(1, sizes[i]), sizes[i], "hoard_calloc");
        ask(), keep(aligned(i, sizes[i]), sizes[i], "hoard_aligned_alloc");
    }
}

/* Through all sizes, up and down. */
static void tour_resizes(void)
{
    static const size_t to[] = {10,      200,     40000,   100000,  5000000, 9000000, 6000000,
                                4500000, 4000000, 2000000, 3000000, 70000,   33000,   100};
    ask();
    int i = keep(hoard_malloc(50), 50, "hoard_malloc");
    for (unsigned k = 0; i >= 0 && k < sizeof to / sizeof *to; k++)
        ask(), resized(i, hoard_realloc(held[i].at, to[k]), to[k], "hoard_realloc");
    if (i < 0) return;
    hoard_free(held[i].at);
    held_count = 0;
}

static void tour_sizes_of_all(void)
{
    unsigned from = held_count;
    struct hoard_stats stats;
    tour_sizes();
    check_held(from);
    let_go(from, 2);
    ask();
    hoard_trim(0);
    expect(hoard_stats(&stats) == 0, "hoard_stats");
    tour_sizes();
    for (unsigned i = from; i < held_count; i++)
        if (held[i].at) expect(hoard_usable_size(held[i].at) >= held[i].size, "hoard_usable_size");
    for (unsigned i = 0; i < 200; i++) ask(), keep(hoard_malloc(2000), 2000, "hoard_malloc");
    check_held(from);
    hoard_trim(1 << 20);
    let_go(from, 3);
    check_held(from);
    expect(shares || heap_is_valid(), "heaps"); /* nobody else may be at them */
    let_go(from, 1);
    held_count = from;
}

/* --- reap.h ------------------------------------------------------------------------------------------- */

static void valid(void *reap)
{
    const char *why;
    if (reap && !reap_is_valid(reap_behind(reap), &why)) expect(false, why);
}

static void *source_take(size_t size, void *arg)
{
    void *chunk = hoard_aligned_alloc(4096, size);
    *(int *)arg += chunk != NULL;
    return chunk;
}

static void source_give(void *chunk, size_t size, void *arg)
{
    (void)size;
    --*(int *)arg;
    hoard_free(chunk);
}

static int ended;

static void count(void *arg) { ended += arg != NULL; }

static int add_size(void *object, size_t size, void *arg)
{
    (void)object;
    *(size_t *)arg += size;
    return 0;
}

static void drop(void **reap, int i)
{
    if (i < 0) return;
    reapFree(reap, held[i].at);
    held[i].at = NULL;
}

/* What a reap has dies with it. */
static void forget(unsigned from)
{
    check_held(from);
    held_count = from;
}

static void tour_objects(void **reap)
{
    static const size_t to[] = {1, 3000, 20000, 40000, 90000, 2000000, 6000000, 50000, 20, 5000};
    int first = -1;
    for (size_t size = 1; size < 200000; size = size * 2 + 1) {
        ask();
        int i = keep(reapMalloc(reap, size), size, "reapMalloc");
        if (first < 0) first = i;
        ask(), keep_zeroed(reapCalloc(reap, 1, size), size, "reapCalloc");
        ask(), keep(reapAlignedAlloc(reap, 256, size), size, "reapAlignedAlloc");
        if (size % 3 != 0) drop(reap, i), first = i == first ? -1 : first;
    }
    for (unsigned k = 0; first >= 0 && k < sizeof to / sizeof *to; k++)
        ask(), resized(first, reapRealloc(reap, held[first].at, to[k]), to[k], "reapRealloc");
    valid(*reap);
}

static void tour_strings(void **reap)
{
    static char text[3000];
    memset(text, 'x', sizeof text - 1);
    ask(), keep(reapStrdup(reap, text), sizeof text, "reapStrdup");
    ask(), keep(reapStrndup(reap, text, 100), 101, "reapStrndup");
    ask(), keep(reapMemdup(reap, text, 2000), 2000, "reapMemdup");
    ask(), keep(reapPrintf(reap, "%9000d", 1), 9001, "reapPrintf");
    ask(), said_no(reapSetName(reap, text) != 0, "reapSetName");
    for (int i = 0; i < 40; i++) ask(), said_no(reapOnDestroy(reap, count, reap) != 0, "reapOnDestroy");
    reapCancelOnDestroy(reap, count, reap);
    const char *name = reapName(reap);
    expect(name == NULL || strcmp(name, text) == 0, "reapName");
}

static void tour_mark(void **reap)
{
    unsigned from = held_count;
    reap_mark mark;
    void *child;
    reapMark(reap, &mark);
    tour_objects(reap);
    ask(), reapCreate(&child, reap), said_no(child == NULL, "reapCreate");
    forget(from);
    reapRewind(reap, &mark);
    tour_strings(reap);
    forget(from);
    reapRewind(reap, &mark);
    reapUnmark(reap, &mark);
    valid(*reap);
}

static void tour_figures(void **reap)
{
    struct reap_stats stats;
    size_t bytes = 0;
    expect(reapStats(reap, &stats) == 0 && reapWalk(reap, add_size, &bytes) == 0, "figures");
    expect(bytes == stats.live_bytes, "reapWalk and reapStats differ");
    reapReport(reap, nowhere);
    reapReport(NULL, nowhere);
}

/* One that shares nothing with the parent's, moved to it, object and reap. */
static void tour_moves(void **reap)
{
    void *other, *to;
    ask(), reapCreate(&other, NULL);
    if (said_no(other == NULL, "reapCreate")) return;
    for (size_t size = 10; size < 3000000; size *= 10) {
        ask();
        int i = keep(reapMalloc(&other, size), size, "reapMalloc");
        if (i < 0) continue;
        ask(), resized(i, reapMove(held[i].at, &other, reap), size, "reapMove");
        expect(reapOf(held[i].at, &to) == 0 && (to == *reap || to == other), "reapOf");
        if (to == other) drop(&other, i);
    }
    ask(), expect(reapAdopt(&other, reap) == 0, "reapAdopt");
    valid(other);
}

static void tour_reap(void **reap)
{
    unsigned from = held_count;
    void *child;
    tour_objects(reap);
    tour_mark(reap);
    tour_strings(reap);
    ask(), reapCreate(&child, reap);
    if (!said_no(child == NULL, "reapCreate")) tour_objects(&child);
    tour_moves(reap);
    tour_figures(reap);
    valid(*reap);
    forget(from);
    reapFreeAll(reap);
    valid(*reap);
    tour_objects(reap);
    forget(from);
}

/* --- the tours, with failures ------------------------------------------------------------------------- */

static void tour_reap_of(struct reap_options options)
{
    int chunks = 0;
    void *reap;
    options.size = sizeof options;
    options.source.arg = &chunks;
    ask();
    int result = reapCreateWith(&reap, NULL, &options);
    if (said_no(result != 0, "reapCreateWith")) expect(reap == NULL, "a handle of nothing");
    if (result == 0) tour_reap(&reap);
    reapDestroy(&reap);
    expect(chunks == 0, "a source's chunks");
}

static void tour_plain(void) { tour_reap_of((struct reap_options){.name = "plain"}); }

static void tour_shared(void) { tour_reap_of((struct reap_options){.flags = REAP_SHARED}); }

static void tour_limited(void)
{
    tour_reap_of((struct reap_options){.limit = (size_t)1 << 30, .first_chunk = 100000});
}

static void tour_source(void)
{
    tour_reap_of((struct reap_options){.source = {source_take, source_give, NULL}, .max_chunk = 65536});
}

static void tour_buffer(void)
{
    static __thread _Alignas(16) char buffer[100000];
    tour_reap_of((struct reap_options){
        .buffer = buffer, .buffer_size = sizeof buffer, .source = {source_take, source_give, NULL}});
}

static void (*const tours[])(void) = {tour_sizes_of_all, tour_resizes, tour_plain, tour_shared,
                                      tour_limited,      tour_source,  tour_buffer};
enum { TOURS = sizeof tours / sizeof *tours };

/* Of all processes. */
static struct {
    unsigned long runs, asked, injected, after;
} * counts;

static struct fault_plan planned;

static void check_rest(void (*tour)(void))
{
    faults_plan(faults_none);
    tells = false;
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "heaps");
    tour();
    hoard_trim(0);
    for (unsigned i = 0; i < 2000 && held_bytes() != 0; i++) { /* the thread that purges has some just now */
        usleep(1000);
        hoard_trim(0);
    }
    expect(live_bytes() == 0, "something lives at last");
    expect(held_bytes() == 0, "something is held");
    expect(heap_is_valid(), "heaps at last");
    unsigned both = 1 << FAULT_MUNMAP | 1 << FAULT_MADVISE;
    bool may_stay = planned.times > 1 && (planned.calls & both) == both; /* that can only serve again */
    size_t left = faults_left_resident();                                /* or serves, as metadata */
    expect(may_stay || left < MIB, "memory that was not unmapped is there");
}

/* Returns true if a call has failed. */
static bool run_once(void (*tour)(void))
{
    tells = (planned.calls & FAULT_ANY_TOLD) != 0;
    counts->after = planned.after;
    faults_plan(planned);
    tour();
    bool any = faults_injected() != 0;
    counts->runs++;
    counts->asked += faults_asked();
    counts->injected += faults_injected();
    check_rest(tour);
    return any;
}

static void open_nowhere(void)
{
    nowhere = fopen("/dev/null", "w");
    expect(nowhere != NULL, "/dev/null");
}

/* A process that has started: all n, one after the other. No addresses are lost, but for what is not
 * unmapped. */
static void warm(void *tour)
{
    open_nowhere();
    check_rest(tours[(intptr_t)tour]);
    size_t before = held_by_process().addresses;
    for (planned.after = 0; run_once(tours[(intptr_t)tour]);) planned.after++;
    bool may_stay = (planned.calls >> FAULT_MUNMAP & 1) != 0;
    expect(may_stay || held_by_process().addresses < before + 6 * MIB, "addresses are lost");
}

/* One that starts so. Its end tells whether a call has failed. */
static void cold(void *tour)
{
    open_nowhere();
    if (run_once(tours[(intptr_t)tour])) _exit(99);
}

static void cold_all(intptr_t tour)
{
    for (planned.after = 0;; planned.after++) {
        struct outcome said = run_child(cold, (void *)tour);
        if (said.status == 0) break;
        ck_assert_msg(WIFEXITED(said.status) && WEXITSTATUS(said.status) == 99,
                      "tour %d, %lu calls before: status %x, %s", (int)tour, counts->after,
                      (unsigned)said.status, said.text);
    }
}

static void warm_all(intptr_t tour)
{
    struct outcome said = run_child(warm, (void *)tour);
    ck_assert_msg(said.status == 0, "tour %d, %lu calls before: status %x, %s", (int)tour, counts->after,
                  (unsigned)said.status, said.text);
}

/* --- cases -------------------------------------------------------------------------------------------- */

enum when { EVER, LATER, AT_START /* a process that has started does not ask for this any more */ };
#define ALL_FROM_ONE_ON (-1ul)
#define MAPPINGS (1 << FAULT_MMAP)
#define SLEEPS (1 << FAULT_FUTEX) /* who can never sleep is busy for ever */

static const struct {
    const char *what;
    enum when when;
    struct fault_plan plan;
} plans[] = {
    {"one mapping", EVER, {.calls = MAPPINGS, .times = 1, .error = EPERM}},
    {"all mappings", EVER, {.calls = MAPPINGS, .times = ALL_FROM_ONE_ON, .error = EPERM}},
    {"large mappings",
     EVER,
     {.calls = MAPPINGS, .times = ALL_FROM_ONE_ON, .least = 4 * MIB + 1, .most = -1ul}},
    {"small mappings", AT_START, {.calls = MAPPINGS, .times = ALL_FROM_ONE_ON, .most = MIB}},
    {"all moves", LATER, {.calls = 1 << FAULT_MREMAP, .times = ALL_FROM_ONE_ON, .error = EPERM}},
    {"all unmappings", EVER, {.calls = 1 << FAULT_MUNMAP, .times = ALL_FROM_ONE_ON}},
    {"one handler for forks", AT_START, {.calls = 1 << FAULT_ATFORK, .times = 1}},
    {"all handlers for forks", AT_START, {.calls = 1 << FAULT_ATFORK, .times = ALL_FROM_ONE_ON}},
    {"one other call", EVER, {.calls = FAULT_ANY_QUIET, .times = 1}},
    {"all other calls", EVER, {.calls = FAULT_ANY_QUIET & ~SLEEPS, .times = ALL_FROM_ONE_ON}},
    {"all calls", EVER, {.calls = FAULT_ANY & ~SLEEPS, .times = ALL_FROM_ONE_ON}},
};
enum { PLANS = sizeof plans / sizeof *plans };

/* make check-world: each plan on all paths, and all tours in new processes; else on one path, and some of
 * them. */
static bool in_world(void) { return getenv("REAP_TEST_WORLD") != NULL; }

static bool is_wanted(unsigned plan, unsigned path) { return in_world() || plan % PATHS == path; }

static void each_tour(int i, const char *options, const char *when, void (*all)(intptr_t tour))
{
    unsigned plan = (unsigned)i / PATHS, path = (unsigned)i % PATHS;
    if (!is_wanted(plan, path) || plans[plan].when == (all == cold_all ? LATER : AT_START)) return;
    const char *name = use_path((int)path, options);
    planned = plans[plan].plan;
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(counts, MAP_FAILED);
    unsigned step = in_world() ? 1 : all == cold_all ? shorter(2, 9) : 1;
    for (intptr_t tour = 0; tour < TOURS; tour += step) all(tour);
    printf("%s, %s, %s: %lu failures in %lu calls to the OS, %lu tours\n", name, when, plans[plan].what,
           counts->injected, counts->asked, counts->runs);
    fflush(stdout);
    ck_assert_uint_gt(counts->injected, 0);
}

TEST(once_it_has_started, .times = PLANS * PATHS) { each_tour(_i, "thp=never", "started", warm_all); }

TEST(from_the_start, .times = PLANS * PATHS)
{
    each_tour(_i, "stats=1,purge_thread=1,thp=never", "starting", cold_all);
}

/* Threads that tour at once, and chance. */
enum { THREADS = 4 };
static unsigned rounds;

static void *tour_by_chance(void *number)
{
    for (unsigned i = 0; i < rounds; i++) tours[((uintptr_t)number + i) % TOURS]();
    return NULL;
}

static void by_chance(void *one_in)
{
    pthread_t threads[THREADS];
    unsigned calls = FAULT_ANY & ~SLEEPS & ~(1 << FAULT_THREAD);
    open_nowhere();
    planned =
        (struct fault_plan){.calls = calls, .times = ALL_FROM_ONE_ON, .one_in = (unsigned)(uintptr_t)one_in};
    tells = shares = true;
    faults_plan(planned);
    for (uintptr_t i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, tour_by_chance, (void *)i) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    fprintf(stderr, "%lu failures in %lu calls to the OS", faults_injected(), faults_asked());
    expect(faults_injected() > 0, "no failures");
    shares = false;
    for (unsigned i = 0; i < TOURS; i++) check_rest(tours[i]);
}

TEST(threads_at_once, .times = 3 * PATHS)
{
    static const unsigned chances[] = {30, 10, 3};
    unsigned one_in = chances[_i / PATHS];
    const char *path = use_path(_i % PATHS, _i / PATHS == 1 ? "purge_ms=0" : "thp=never");
    rounds = in_world() ? 20 * TOURS : TOURS;
    struct outcome said = run_child(by_chance, (void *)(uintptr_t)one_in);
    printf("%s, threads, one call in %u: %s\n", path, one_in, said.text);
    fflush(stdout);
    ck_assert_msg(said.status == 0, "status %x: %s", (unsigned)said.status, said.text);
}

/* The kernel has no memory for a fence: it is asked again, and errno is kept. */
static void free_by_fences(void *times)
{
    void *block = hoard_malloc(100);
    faults_plan((struct fault_plan){.calls = 1 << FAULT_FENCE, .times = (uintptr_t)times});
    errno = 12345;
    hoard_free(block);
    hoard_trim(0);
    expect(faults_injected() == (uintptr_t)times, "no fences");
    expect(errno == 12345, "errno");
    expect(held_bytes() == 0, "something is held");
}

TEST(a_fence_is_asked_for_again, .times = 2)
{
    use_path(_i, NULL);
    for (uintptr_t times = 1; times < 1000; times *= 10) {
        struct outcome said = run_child(free_by_fences, (void *)times);
        ck_assert_msg(said.status == 0, "%lu times: status %x, %s", times, (unsigned)said.status, said.text);
    }
}

/* While libc has no memory for a handler, there is no reap; afterwards a child of a fork knows what it does
 * not have: the thread that has entered one. */
static void *entered;

static void *enter_and_stay(void *at_it)
{
    reapEnter(&entered);
    sem_post(at_it);
    while (true) pause();
    return NULL;
}

static void destroy_in_child(void)
{
    pthread_t thread;
    sem_t at_it;
    int status = -1;
    sem_init(&at_it, 0, 0);
    reapCreate(&entered, NULL);
    expect(entered != NULL && pthread_create(&thread, NULL, enter_and_stay, &at_it) == 0, "no thread");
    while (sem_wait(&at_it) != 0) continue;
    pid_t pid = fork();
    if (pid == 0) {
        reapDestroy(&entered);
        _exit(entered != NULL);
    }
    expect(waitpid(pid, &status, 0) == pid && status == 0,
           "the child takes the reap for one that is entered");
}

static void create_without_handlers(void *times)
{
    struct reap_options options = {.size = sizeof options};
    void *reap = &options;
    faults_plan((struct fault_plan){.calls = 1 << FAULT_ATFORK, .times = ALL_FROM_ONE_ON});
    for (uintptr_t n = 0; n < (uintptr_t)times; n++) {
        reap = &options;
        errno = 0;
        reapCreate(&reap, NULL);
        expect(reap == NULL && errno == ENOMEM, "a reap without handlers");
        reap = &options;
        errno = 0;
        expect(reapCreateWith(&reap, NULL, &options) == -1 && !reap && errno == ENOMEM, "one with options");
        reapReport(NULL, nowhere);
    }
    faults_plan(faults_none);
    destroy_in_child();
}

TEST(there_is_no_reap_without_handlers, .times = 3 * PATHS)
{
    static const char *const options[] = {NULL, "stats=1", "harden=1,leaks=1"};
    open_nowhere();
    use_path(_i % PATHS, options[_i / PATHS]);
    for (uintptr_t times = 0; times < 3; times++) {
        struct outcome said = run_child(create_without_handlers, (void *)times);
        ck_assert_msg(said.status == 0, "%lu times: status %x, %s", times, (unsigned)said.status, said.text);
    }
}

int main(void) { return run_tests((struct suite){.seconds = 600}); }
