/* SPDX-License-Identifier: Apache-2.0 */
#include "check_backend.h"

#include "arena/arena.h"
#include "base/options.h"
#include "heap/heap.h"
#include "os/rseq.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

uint64_t random_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = (uint64_t)now.tv_sec * 1000000007 + (uint64_t)now.tv_nsec;
    const char *given = getenv("REAP_TEST_SEED");
    if (given != NULL) seed = strtoull(given, NULL, 0);
    seed += seed == 0;
    fprintf(stderr, "REAP_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

unsigned steps_of(unsigned preset)
{
    const char *given = getenv("REAP_TEST_STEPS");
    preset = shorter(preset, preset / 8);
    unsigned long steps = given != NULL ? strtoul(given, NULL, 0) : preset;
    return steps < preset ? (unsigned)steps : preset;
}

bool is_slowed(void) { return getenv("REAP_TEST_STEPS") != NULL; }

unsigned shorter(unsigned full, unsigned brief)
{
    const char *is_short = getenv("REAP_TEST_SHORT");
    return is_short != NULL && *is_short != '\0' ? brief : full;
}

const char *use_path(int i, const char *more)
{
    static const char *const paths[POLICIES] = {"heaps=cid",
                                                "heaps=cpu",
                                                "path=locked",
                                                "heaps=core",
                                                "heaps=thread",
                                                "heaps=dynamic:7",
                                                "heaps=roundrobin",
                                                "heaps=single",
                                                "heaps=cid,topology=0.0:1.1:0.0:1.1",
                                                "path=locked,topology=0.0:1.1:0.0:1.1"};
    char text[256];
    snprintf(text, sizeof text, "%s,%s", paths[i], more != NULL ? more : "");
    setenv("REAP_OPTIONS", text, 1);
    return paths[i];
}

void start_arenas(void)
{
    sizeclass_init();
    superblock_init();
    options.purge_ms = 3600000;
}

bool all_bytes(const void *bytes, size_t n, unsigned char value)
{
    const unsigned char *first = bytes;
    return n == 0 || (*first == value && memcmp(first, first + 1, n - 1) == 0);
}

void *stub_of(const void *block) { return arena_stub(pagemap_find(block), superblock_of(block), block); }

struct superblock *superblock_of(const void *block) { return arena_head(pagemap_find(block), block); }

struct hoard_stats stats_now(void)
{
    struct hoard_stats stats;
    hoard_stats(&stats);
    return stats;
}

size_t live_bytes(void) { return stats_now().live_bytes; }

size_t held_bytes(void) { return stats_now().held_bytes; }

void assert_all_comes_back(void)
{
    ck_assert_uint_eq(live_bytes(), 0);
    ck_assert(heap_is_valid());
    hoard_trim(0);
    ck_assert_uint_eq(held_bytes(), 0);
    ck_assert(heap_is_valid());
}

static cpu_set_t allowed;

/* Before anybody is pinned, and threads are made that take that over. */
__attribute__((constructor)) static void see_cpus(void) { sched_getaffinity(0, sizeof allowed, &allowed); }

unsigned cpus_at_start(void) { return (unsigned)CPU_COUNT(&allowed); }

void pin_to(unsigned i)
{
    int number = 0;
    for (i %= cpus_at_start(); !CPU_ISSET(number, &allowed) || i-- != 0;) number++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

atomic_bool is_over;
static pthread_t threads[16];
static unsigned thread_count;

void start_threads(unsigned n, void *(*body)(void *arg), void *arg)
{
    is_over = false;
    for (; n > 0; n--) ck_assert_int_eq(pthread_create(&threads[thread_count++], NULL, body, arg), 0);
}

static void join_threads(void)
{
    while (thread_count > 0) pthread_join(threads[--thread_count], NULL);
}

void end_threads(void)
{
    is_over = true;
    join_threads();
}

void in_threads(unsigned n, void *(*body)(void *arg), void *arg)
{
    start_threads(n, body, arg);
    join_threads();
}

void *in_thread(void *(*body)(void *arg), void *arg)
{
    pthread_t thread;
    void *result;
    ck_assert_int_eq(pthread_create(&thread, NULL, body, arg), 0);
    pthread_join(thread, &result);
    return result;
}

static int *skips; /* the processes' of all tests */

bool has_rseq(void)
{
    hoard_free(hoard_malloc(1));
    return cpu.ids != 0;
}

void note_skip(const char *why, const char *test)
{
    size_t length = strlen(test);
    if (length > 3 && strcmp(test + length - 3, "_fn") == 0) length -= 3; /* Check's */
    printf("skipped: %s: %.*s\n", why, (int)length, test);
    fflush(stdout);
    __atomic_fetch_add(skips, 1, __ATOMIC_RELAXED);
}

static void run_and_exit(int fd, void (*fn)(void *arg), void *arg)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGABRT, SIG_DFL);
    dup2(fd, STDERR_FILENO);
    close(fd);
    fn(arg);
    _exit(0);
}

struct outcome run_child(void (*fn)(void *arg), void *arg)
{
    struct outcome outcome = {0};
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) run_and_exit(ends[1], fn, arg);
    close(ends[1]);
    size_t have = 0;
    for (ssize_t n; (n = read(ends[0], outcome.text + have, sizeof outcome.text - 1 - have)) > 0;)
        have += (size_t)n;
    close(ends[0]);
    char *emulators = strstr(outcome.text, "qemu: uncaught target signal"); /* not the program's word */
    if (emulators != NULL) *emulators = '\0';
    waitpid(pid, &outcome.status, 0);
    return outcome;
}

void expect(bool right, const char *what)
{
    if (right) return;
    fprintf(stderr, "child: %s\n", what);
    _exit(1);
}

unsigned lines_of(const char *text)
{
    unsigned lines = 0;
    for (; *text != '\0'; text++) lines += *text == '\n';
    return lines;
}

bool is_misuse(const struct outcome *outcome, const char *call, const void *pointer, const char *what)
{
    char line[512];
    snprintf(line, sizeof line, "reap: %s(0x%lx): %s\n", call, (unsigned long)pointer, what);
    bool is_as_expected = WIFSIGNALED(outcome->status) && WTERMSIG(outcome->status) == SIGABRT &&
                          strcmp(outcome->text, line) == 0;
    if (!is_as_expected)
        fprintf(stderr, "status %x, expected %sbut got %s", outcome->status, line, outcome->text);
    return is_as_expected;
}

enum reap_mode reap_mode;

static void be_shared(void) { reap_mode = MODE_SHARED; }

static void be_in_parts(void)
{
    use_path(PATHS - 1, "heaps=roundrobin");
    reap_mode = MODE_PARTS;
}

static struct {
    const TTest *test;
    struct how how;
} tests[100];
static unsigned test_count;

void add_test(const TTest *test, struct how how)
{
    if (test_count == sizeof tests / sizeof *tests) abort();
    tests[test_count].test = test;
    tests[test_count++].how = how;
}

static TCase *case_of(const TTest *test, struct how how, enum reap_mode mode, const struct suite *suite)
{
    static void (*const begins[MODES])(void) = {NULL, be_shared, be_in_parts};
    static const char *const names[MODES] = {"%s", "%s, shared", "%s, in parts"};
    char *name; /* Check keeps it */
    if (asprintf(&name, names[mode], test->name) < 0) abort();
    TCase *one = tcase_create(name);
    if (begins[mode] != NULL) tcase_add_checked_fixture(one, begins[mode], NULL);
    if (how.apart)
        tcase_set_tags(one, "apart");
    else
        tcase_add_checked_fixture(one, suite->begin, suite->end);
    tcase_set_timeout(one, suite->seconds != 0 ? suite->seconds : 60);
    if (mode != MODE_ORDINARY && how.times_shared != 0) how.times = how.times_shared;
    tcase_add_loop_test(one, test, 0, how.times != 0 ? (int)how.times : 1);
    return one;
}

int run_tests(struct suite suite)
{
    Suite *all = suite_create(program_invocation_short_name);
    for (unsigned mode = 0; mode < MODES; mode++)
        for (unsigned i = 0; i < test_count; i++) {
            unsigned modes = tests[i].how.modes ? tests[i].how.modes : ALL_MODES;
            if (modes & (suite.modes ? suite.modes : ORDINARY) & 1u << mode)
                suite_add_tcase(all, case_of(tests[i].test, tests[i].how, (enum reap_mode)mode, &suite));
        }
    SRunner *runner = srunner_create(all);
    skips = mmap(NULL, sizeof *skips, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (skips == MAP_FAILED) abort();
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner), run = srunner_ntests_run(runner);
    srunner_free(runner);
    if (*skips != 0) printf("%s: %d of %d tests were skipped\n", program_invocation_short_name, *skips, run);
    if (failed != 0) return EXIT_FAILURE;
    return *skips != 0 && *skips == run ? SKIPPED : EXIT_SUCCESS;
}
