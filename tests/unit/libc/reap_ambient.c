/* SPDX-License-Identifier: Apache-2.0 */
/* reap_ambient.c: malloc and its family inside reapEnter and reapLeave. Linked to libreap-malloc; no Check,
 * which would run on the malloc that is tested. */
#include <dirent.h>
#include <malloc.h>
#include <sys/mman.h>

#include "hoard.h"
#include "reap.h"
#include "support/expect.h"

void *new_plain(size_t size) __asm__("_Znwm");
void *new_aligned(size_t size, size_t alignment) __asm__("_ZnwmSt11align_val_t");
void delete_plain(void *object) __asm__("_ZdlPv");

static void *reap;

static void *owner_of(const void *pointer)
{
    void *owner;
    reapOf(pointer, &owner);
    return owner;
}

static size_t live_objects(void **handle)
{
    struct reap_stats stats;
    EXPECT(reapStats(handle, &stats) == 0);
    return stats.live_objects;
}

static bool is_zero(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return false;
    return true;
}

/* --- what comes from the reap ---------------------------------------------------------------- */

#define IN_REAP(pointer) EXPECT(owner_of(pointer) == reap)
#define ON_HEAP(pointer) EXPECT((pointer) != NULL && owner_of(pointer) == NULL)

/* Nothing is an object, too. */
CASE(of_no_size)
{
    void *aligned = NULL;
    volatile size_t none = 0;
    reapEnter(&reap);
    IN_REAP(OPAQUE(malloc(none)));
    IN_REAP(OPAQUE(calloc(none, 8)));
    IN_REAP(OPAQUE(calloc(8, none)));
    IN_REAP(OPAQUE(realloc(NULL, none)));
    IN_REAP(OPAQUE(aligned_alloc(16, none)));
    IN_REAP(OPAQUE(aligned_alloc(64, none)));
    EXPECT(posix_memalign(&aligned, 16, none) == 0);
    IN_REAP(aligned);
    IN_REAP(new_plain(none));
    reapLeave();
    ON_HEAP(aligned = OPAQUE(calloc(none, 8)));
    free(aligned);
    reapFreeAll(&reap);
}

/* Whole pages, for those who ask for them so. */
CASE(of_whole_pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 10; size < 100000; size = size * 7 + page / 2) {
        reapEnter(&reap);
        void *pages = OPAQUE(pvalloc(size));
        IN_REAP(pages);
        EXPECT((uintptr_t)pages % page == 0 && malloc_usable_size(pages) >= (size + page - 1) / page * page);
        reapLeave();
        free(pages);
    }
    reapFreeAll(&reap);
}

/* free() changes no errno, whatever the reap's source does to it: in a reap that is entered, or shared. */
static void *map(size_t size, void *arg)
{
    void *chunk = mmap(arg, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return chunk != MAP_FAILED ? chunk : NULL;
}

static void unmap(void *chunk, size_t size, void *arg)
{
    munmap(chunk, size);
    errno = arg ? 0 : 5;
}

CASE(free_keeps_errno)
{
    struct reap_options options = {.size = sizeof options, .source = {map, unmap, NULL}};
    for (options.flags = 0; options.flags <= REAP_SHARED; options.flags += REAP_SHARED) {
        void *sourced;
        EXPECT(reapCreateWith(&sourced, NULL, &options) == 0);
        reapEnter(&sourced);
        void *object = OPAQUE(malloc(100000));
        EXPECT(owner_of(object) == sourced);
        errno = 77;
        free(object);
        EXPECT(errno == 77);
        reapLeave();
        EXPECT(live_objects(&sourced) == 0);
        reapDestroy(&sourced);
    }
}

static void the_family(size_t size)
{
    void *aligned = NULL;
    reapEnter(&reap);
    char *zeroed = calloc(2, size), *old = malloc(size);
    IN_REAP(OPAQUE(old));
    IN_REAP(zeroed);
    EXPECT(is_zero(zeroed, 2 * size));
    memset(zeroed, 1, 2 * size);
    IN_REAP(OPAQUE(realloc(NULL, size)));
    IN_REAP(OPAQUE(reallocarray(NULL, 2, size)));
    IN_REAP(OPAQUE(aligned_alloc(64, size)));
    IN_REAP(OPAQUE(memalign(256, size)));
    IN_REAP(OPAQUE(valloc(size)));
    EXPECT(posix_memalign(&aligned, 1024, size) == 0 && (uintptr_t)aligned % 1024 == 0);
    IN_REAP(aligned);
    void *object = new_plain(size);
    IN_REAP(object);
    delete_plain(object);
    IN_REAP(new_aligned(size, 128));
    char *moved = OPAQUE(realloc(old, 3 * size + 100));
    IN_REAP(moved);
    EXPECT(malloc_usable_size(moved) >= 3 * size + 100);
    free(moved);
    reapLeave();
    ON_HEAP(OPAQUE(object = malloc(size)));
    free(object);
    reapFreeAll(&reap);
}

/* What libc allocates for its caller, and what for itself. */
CASE(calls_of_libc)
{
    static char text[] = "a line\nanother one, which is longer than what getline begins with: "
                         "............................................................................\n";
    char *line = NULL, *made = NULL, *longer = NULL;
    size_t size = 0;
    FILE *outside = fmemopen(text, sizeof text - 1, "r");
    reapEnter(&reap);
    IN_REAP(OPAQUE(strdup("text")));
    IN_REAP(OPAQUE(strndup("text", 2)));
    EXPECT(asprintf(&made, "%d", 7) == 1 && asprintf(&longer, "%9000d", 7) == 9000);
    IN_REAP(made);
    IN_REAP(longer);
    EXPECT(getline(&line, &size, outside) == 7);
    IN_REAP(line);
    EXPECT(getline(&line, &size, outside) > 130);
    IN_REAP(line);
    IN_REAP(realpath("/", NULL));
    IN_REAP(getcwd(NULL, 0));
    size_t before = live_objects(&reap);
    FILE *inside = fopen("/dev/null", "w");
    ON_HEAP(inside);
    fprintf(inside, "%100d\n", 1);
    fclose(inside);
    DIR *directory = opendir("/");
    ON_HEAP(directory);
    closedir(directory);
    EXPECT(setenv("REAP_TEST_AMBIENT", "something that has to be kept", 1) == 0);
    EXPECT(live_objects(&reap) == before);
    reapLeave();
    fclose(outside);
    reapDestroy(&reap);
    reapCreate(&reap, NULL);
    EXPECT(strcmp(getenv("REAP_TEST_AMBIENT"), "something that has to be kept") == 0);
}

/* --- free and realloc find the owner --------------------------------------------------------- */

CASE(owners)
{
    char *outside = OPAQUE(strdup("outside")), *gone = OPAQUE(malloc(50));
    reapEnter(&reap);
    char *inside = OPAQUE(strdup("inside"));
    outside = OPAQUE(realloc(outside, 500));
    ON_HEAP(outside);
    free(gone);
    reapLeave();
    inside = OPAQUE(realloc(inside, 500));
    IN_REAP(inside);
    EXPECT(strcmp(inside, "inside") == 0 && strcmp(outside, "outside") == 0);
    EXPECT(live_objects(&reap) == 1);
    free(outside);
    free(inside);
    EXPECT(live_objects(&reap) == 0);
    reapEnter(&reap);
    void *first = OPAQUE(malloc(100));
    for (int i = 0; i < 100000; i++) free(OPAQUE(malloc(100)));
    free(first);
    reapLeave();
    struct reap_stats stats;
    EXPECT(reapStats(&reap, &stats) == 0 && stats.live_objects == 0 && stats.chunks <= 2);
}

/* --- several ---------------------------------------------------------------------------------- */

CASE(they_nest)
{
    void *outer = reap, *inner;
    reapCreate(&inner, &outer);
    reapEnter(&outer);
    EXPECT(owner_of(OPAQUE(malloc(10))) == outer);
    reapEnter(&inner);
    EXPECT(owner_of(OPAQUE(malloc(10))) == inner);
    reapEnter(&inner);
    EXPECT(owner_of(OPAQUE(malloc(10))) == inner);
    reapLeave();
    EXPECT(owner_of(OPAQUE(malloc(10))) == inner);
    reapLeave();
    EXPECT(owner_of(OPAQUE(malloc(10))) == outer);
    reapLeave();
    void *object = OPAQUE(malloc(10));
    ON_HEAP(object);
    free(object);
    reapFreeAll(&outer);
}

/* What must outlive the reap comes from the heap, whatever else is in it. */
CASE(the_heap_within)
{
    void *none = NULL, *kept, *object;
    reapEnter(&reap);
    object = OPAQUE(malloc(100));
    reapEnter(NULL);
    EXPECT(reapEntered() == NULL);
    ON_HEAP(kept = OPAQUE(malloc(100)));
    object = OPAQUE(realloc(object, 1000)); /* it stays with its owner */
    IN_REAP(object);
    free(object);
    reapEnter(&none);
    ON_HEAP(object = OPAQUE(strdup("text")));
    free(object);
    reapLeave();
    ON_HEAP(object = OPAQUE(calloc(1, 3000000)));
    free(object);
    reapLeave();
    IN_REAP(OPAQUE(malloc(100)));
    reapLeave();
    reapFreeAll(&reap);
    EXPECT(malloc_usable_size(kept) >= 100);
    free(kept);
}

/* Enters and leaves four reaps and the heap at random, beside a stack that says which is innermost. The child
 * of a fork is in all that its parent is in. */
enum { STACKED = 24, HEAP = 4, STEPS = 20000 };
static void *mixed[HEAP + 1]; /* the last one stays NULL: the heap; the one before is shared */

static bool is_allowed(const int *stack, unsigned depth, int what)
{
    if (what == HEAP || (depth > 0 && stack[depth - 1] == what)) return true;
    for (unsigned i = 0; i < depth; i++)
        if (stack[i] == what) return false;
    return true;
}

static void leave_all(const int *stack, unsigned depth)
{
    for (; depth > 0; depth--) {
        EXPECT(owner_of(OPAQUE(malloc(10))) == mixed[stack[depth - 1]]);
        reapLeave();
    }
    ON_HEAP(OPAQUE(malloc(10)));
}

static void fork_within(const int *stack, unsigned depth)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        leave_all(stack, depth);
        for (int i = 0; i < HEAP; i++) reapDestroy(&mixed[i]); /* the child knows that it is in none */
        _exit(expect_status());
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

CASE(they_nest_with_the_heap)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    int stack[STACKED];
    unsigned depth = 0, chance = 1;
    for (int i = 0; i < HEAP - 1; i++) reapCreate(&mixed[i], NULL);
    EXPECT(reapCreateWith(&mixed[HEAP - 1], NULL, &options) == 0);
    for (int step = 0; step < STEPS; step++) {
        chance = chance * 1103515245 + 12345;
        int what = (int)(chance >> 16) % (HEAP + 3);
        if (what > HEAP || depth == STACKED) {
            if (depth == 0) continue;
            reapLeave();
            depth--;
        } else if (is_allowed(stack, depth, what)) {
            reapEnter(&mixed[what]);
            stack[depth++] = what;
        }
        void *innermost = depth > 0 ? mixed[stack[depth - 1]] : NULL, *object = OPAQUE(malloc(10));
        EXPECT(reapEntered() == innermost && owner_of(object) == innermost);
        free(object);
        if (step % (STEPS / 20) == 0) fork_within(stack, depth);
    }
    leave_all(stack, depth);
    for (int i = 0; i < HEAP; i++) reapDestroy(&mixed[i]);
}

static void *elsewhere(void *arg)
{
    void *mine, *object = OPAQUE(malloc(100));
    (void)arg;
    ON_HEAP(object);
    reapCreate(&mine, NULL);
    for (int i = 0; i < 1000; i++) {
        reapEnter(&mine);
        EXPECT(owner_of(OPAQUE(malloc((size_t)i * 7))) == mine);
        reapLeave();
        free(object);
        object = OPAQUE(malloc((size_t)i * 7));
        ON_HEAP(object);
    }
    free(object);
    reapDestroy(&mine);
    return NULL;
}

CASE(each_thread_has_its_own)
{
    pthread_t threads[3];
    reapEnter(&reap);
    size_t before = live_objects(&reap);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, elsewhere, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    EXPECT(live_objects(&reap) == before);
    reapLeave();
}

static void *in_the_shared_one(void *shared)
{
    void *own;
    reapCreate(&own, NULL);
    reapEnter(&shared);
    reapEnter(&shared);
    for (size_t i = 0; i < 10000; i++) {
        char *text = OPAQUE(strdup("text")), *more = OPAQUE(realloc(malloc(i % 300), 400));
        EXPECT(owner_of(text) == shared && owner_of(more) == shared);
        free(text);
        if (i % 100) free(more);
    }
    reapEnter(&own);
    EXPECT(owner_of(OPAQUE(malloc(10))) == own);
    reapLeave();
    reapLeave();
    EXPECT(owner_of(OPAQUE(malloc(10))) == shared);
    reapLeave();
    reapDestroy(&own);
    return NULL;
}

CASE(threads_are_in_one)
{
    pthread_t threads[3];
    void *shared, *object;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    EXPECT(reapCreateWith(&shared, &reap, &options) == 0);
    reapEnter(&reap);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, in_the_shared_one, shared);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    in_the_shared_one(shared);
    IN_REAP(object = OPAQUE(malloc(10)));
    reapLeave();
    EXPECT(live_objects(&shared) == 4 * 101);
    reapDestroy(&shared);
    reapFreeAll(&reap);
}

CASE(a_limit_holds)
{
    EXPECT(reapSetLimit(&reap, 100000) == 0);
    reapEnter(&reap);
    int n = 0;
    while (OPAQUE(malloc(1000))) n++;
    EXPECT(n > 90 && n < 100);
    EXPECT(OPAQUE(malloc(50000)) == NULL);
    reapLeave();
    reapFreeAll(&reap);
    EXPECT(reapSetLimit(&reap, 0) == 0);
}

/* --- functions of ours that are called on the way ------------------------------------------- */

static size_t taken, given;
static bool is_child;

/* As a program would write it: malloc, and in the way of its own calls too. */
static void *take(size_t size, void *arg)
{
    char *note = OPAQUE(strdup("taken"));
    ON_HEAP(note);
    free(note);
    void *chunk = OPAQUE(aligned_alloc(4096, size));
    ON_HEAP(chunk);
    void *(*nested)(void) = arg;
    if (nested) ON_HEAP(nested());
    taken++;
    return chunk;
}

static void give(void *chunk, size_t size, void *arg)
{
    (void)arg, (void)size;
    void *note = OPAQUE(malloc(100));
    ON_HEAP(note);
    free(note);
    free(chunk);
    given++;
}

/* Enters another reap inside of a source, and forks there: the child is where its parent is. */
static void *nested(void)
{
    static bool is_within;
    void *inner, *object = OPAQUE(malloc(10));
    if (is_within) return object;
    is_within = true;
    reapCreate(&inner, NULL);
    reapEnter(&inner);
    EXPECT(owner_of(OPAQUE(malloc(10))) == inner);
    reapLeave();
    ON_HEAP(object);
    reapDestroy(&inner);
    pid_t child = fork();
    is_child |= child == 0;
    if (child > 0) {
        int status = -1;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    }
    is_within = false;
    return object;
}

static void a_source_on_the_heap(void *(*within)(void))
{
    struct reap_options options = {.size = sizeof options, .source = {take, give, within}};
    void *outer = reap;
    EXPECT(reapCreateWith(&reap, within ? &outer : NULL, &options) == 0);
    reapEnter(&reap);
    for (size_t i = 0; i < 200 && !is_child; i++) {
        void *small = OPAQUE(malloc(3000)), *big = OPAQUE(malloc(100000 + i * 5000));
        IN_REAP(small);
        IN_REAP(big);
        if (i % 2) free(big);
        if (within) i += 50;
    }
    if (is_child) {
        reapEnter(&reap); /* it is in it, and this the innermost */
        IN_REAP(OPAQUE(malloc(10)));
        reapLeave();
        reapLeave();
        ON_HEAP(OPAQUE(malloc(10)));
        _exit(expect_status());
    }
    reapLeave();
    reapDestroy(&reap);
    reap = outer;
    EXPECT(taken == given && taken > 0);
}

static void *asked_in_limit;
static void on_limit(void **met, size_t size, void *arg)
{
    (void)met, (void)size, (void)arg;
    asked_in_limit = OPAQUE(malloc(1000)); /* within the reap, that has none */
}

CASE(a_limits_function)
{
    int calls = 0;
    EXPECT(reapSetLimit(&reap, 100000) == 0);
    reapOnLimit(&reap, on_limit, &calls);
    reapEnter(&reap);
    for (int i = 0; i < 300; i++) (void)OPAQUE(malloc(1000));
    EXPECT(asked_in_limit == NULL);
    reapLeave();
    reapOnLimit(&reap, NULL, NULL);
    reapFreeAll(&reap);
    EXPECT(reapSetLimit(&reap, 0) == 0);
}

int main(void)
{
    static const size_t sizes[] = {1, 24, 100, 1000, 1500, 5000, 30000, 100000, 3000000};
    reapCreate(&reap, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) the_family(sizes[i]);
    run_cases(NULL);
    a_source_on_the_heap(NULL);
    a_source_on_the_heap(nested);
    reapDestroy(&reap);
    return expect_status();
}
