/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows what it allocates. It prints its number, waits for a line, works, prints what the heap
 * profile should have seen, waits for another line, and ends:
 *
 *     NAME LIVE-OBJECTS LIVE-BYTES OBJECTS BYTES LARGEST      "malloc", or the name of reaps
 *
 * The name is the piece of work; `fork` does it in a child, and prints the child's number before. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reap.h"
#include "tools/common/profile_face.h"

/* Functions that allocate. */
#define SITE __attribute__((noinline))
void *allocate(void *arg);
void *share(void *arg);
void use_module(const char *path);
void use_freed(void);
void use_moved(void);
void use_entered(void);
void use_charged(void);
void use_stacks(void);

struct sums {
    size_t live, live_bytes, all, all_bytes, largest;
};

static void count(struct sums *sums, size_t size)
{
    sums->live++;
    sums->live_bytes += size;
    sums->all++;
    sums->all_bytes += size;
    if (size > sums->largest) sums->largest = size;
}
static void uncount(struct sums *sums, size_t size)
{
    sums->live--;
    sums->live_bytes -= size;
}
static void print(const char *name, const struct sums *sums)
{
    printf("%s %zu %zu %zu %zu %zu\n", name, sums->live, sums->live_bytes, sums->all, sums->all_bytes,
           sums->largest);
}
static void wait_for_line(void)
{
    fflush(stdout);
    for (int c; (c = getchar()) != '\n';)
        if (c == EOF) exit(1);
}

/* A row of sizes that repeats nothing soon. */
static size_t next_size(unsigned *state, size_t most)
{
    return ((*state = *state * 69069 + 1) >> 8) % most + 1;
}

/* --- malloc ---------------------------------------------------------------------------------- */

enum { THREADS = 3, EACH = 40000 };
static void *blocks[THREADS][EACH];
static struct sums of_threads[THREADS];

SITE void *allocate(void *arg)
{
    size_t me = (size_t)arg;
    unsigned state = (unsigned)me + 1;
    struct sums *sums = &of_threads[me];
    for (size_t i = 0; i < EACH; i++) {
        size_t size = next_size(&state, 1000);
        void *block = NULL;
        if (i % 5 == 0)
            block = calloc(1, size);
        else if (i % 5 == 1)
            block = aligned_alloc(64, size);
        else if (i % 5 == 2 && posix_memalign(&block, 32, size) != 0)
            abort();
        else if (i % 5 > 2)
            block = malloc(size);
        count(sums, size);
        if (i % 7 == 0) {
            uncount(sums, size);
            size = next_size(&state, 3000);
            block = realloc(block, size);
            count(sums, size);
        }
        if (!block) abort();
        blocks[me][i] = block;
        *(size_t *)block = 0;
    }
    return NULL;
}

/* Each thread's blocks are freed by another one: all of the even ones. Their sizes are found by counting
 * again. */
static void *release(void *arg)
{
    size_t whose = ((size_t)arg + 1) % THREADS;
    unsigned state = (unsigned)whose + 1;
    for (size_t i = 0; i < EACH; i++) {
        size_t size = next_size(&state, 1000);
        if (i % 7 == 0) size = next_size(&state, 3000);
        if (i % 2 != 0) continue;
        free(blocks[whose][i]);
        uncount(&of_threads[whose], size);
    }
    return NULL;
}

static void in_threads(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void use_malloc(void)
{
    struct sums sums = {.live = 0};
    in_threads(allocate);
    in_threads(release);
    for (size_t i = 0; i < THREADS; i++) {
        sums.live += of_threads[i].live;
        sums.live_bytes += of_threads[i].live_bytes;
        sums.all += of_threads[i].all;
        sums.all_bytes += of_threads[i].all_bytes;
        if (of_threads[i].largest > sums.largest) sums.largest = of_threads[i].largest;
    }
    print("malloc", &sums);
}

/* A module that is opened now allocates by a function of its own. */
SITE void use_module(const char *path)
{
    struct sums sums = {.live = 0};
    void *module = dlopen(path, RTLD_NOW);
    void *(*allocate_in_module)(size_t) = NULL;
    if (module) *(void **)&allocate_in_module = dlsym(module, "allocate_in_module");
    if (!allocate_in_module) {
        puts(dlerror());
        return;
    }
    /* A sample finds the module. */
    for (int i = 0; i < 100; i++) free(malloc(64 * 1024));
    puts("opened");
    wait_for_line();
    for (unsigned i = 0, state = 1; i < 40000; i++) {
        size_t size = next_size(&state, 1000);
        if (!allocate_in_module(size)) abort();
        count(&sums, size);
    }
    sums.all += 100;
    sums.all_bytes += 100 * 64 * 1024;
    sums.largest = 64 * 1024;
    print("malloc", &sums);
}

/* --- reaps ----------------------------------------------------------------------------------- */

static size_t rounded(size_t size) { return (size + 15) / 16 * 16; }

static void make(void **reap, void **parent, const char *name, unsigned flags)
{
    struct reap_options options = {.size = sizeof options, .name = name, .flags = flags};
    if (reapCreateWith(reap, parent, &options) != 0) abort();
}

void fill(void **reap, struct sums *sums, unsigned n, size_t most);
SITE void fill(void **reap, struct sums *sums, unsigned n, size_t most)
{
    for (unsigned i = 0, state = n; i < n; i++) {
        size_t size = rounded(next_size(&state, most));
        if (!reapMalloc(reap, size)) abort();
        count(sums, size);
    }
}

static void forget_live(struct sums *sums) { sums->live = sums->live_bytes = 0; }

static void use_kept(void)
{
    void *reap;
    struct sums sums = {.live = 0};
    make(&reap, NULL, "kept", 0);
    fill(&reap, &sums, 100000, 300);
    fill(&reap, &sums, 200, 100000);
    print("kept", &sums);
}

static void use_ended(void)
{
    void *parent, *reap;
    struct sums sums = {.live = 0}, own = {.live = 0};
    for (int i = 0; i < 40; i++) {
        make(&parent, NULL, "parent", 0);
        fill(&parent, &own, 50, 100);
        for (int j = 0; j < 5; j++) {
            make(&reap, &parent, "ended", 0);
            fill(&reap, &sums, 1000, 300);
        }
        if (i < 30) {
            reapDestroy(&parent);
            forget_live(&sums);
            forget_live(&own);
        }
    }
    print("ended", &sums);
}

static void use_cleared(void)
{
    void *reap;
    struct sums sums = {.live = 0};
    make(&reap, NULL, "cleared", 0);
    for (int i = 0; i < 3000; i++) {
        reapFreeAll(&reap);
        forget_live(&sums);
        fill(&reap, &sums, 60, 100);
    }
    fill(&reap, &sums, 60000, 300);
    print("cleared", &sums);
}

static void use_rewound(void)
{
    void *reap;
    reap_mark mark;
    struct sums sums = {.live = 0}, before;
    make(&reap, NULL, "rewound", 0);
    fill(&reap, &sums, 30000, 300);
    reapMark(&reap, &mark);
    before = sums;
    for (int i = 0; i < 100; i++) {
        reapRewind(&reap, &mark);
        sums.live = before.live;
        sums.live_bytes = before.live_bytes;
        fill(&reap, &sums, 500, 300);
    }
    print("rewound", &sums);
}

/* The last object is freed at once, and others in any order. */
SITE void use_freed(void)
{
    enum { N = 30000 };
    static void *objects[N];
    void *reap;
    struct sums sums = {.live = 0};
    make(&reap, NULL, "freed", 0);
    for (int i = 0; i < 100000; i++) {
        reapFree(&reap, reapMalloc(&reap, 208));
        count(&sums, 208);
        uncount(&sums, 208);
    }
    for (unsigned i = 0, state = 5; i < N; i++) {
        objects[i] = reapMalloc(&reap, rounded(next_size(&state, 500)));
        count(&sums, reapUsableSize(objects[i]));
        if (i % 3 != 0) continue;
        unsigned j = state / 7 % (i + 1);
        if (!objects[j]) continue;
        uncount(&sums, reapUsableSize(objects[j]));
        reapFree(&reap, objects[j]);
        objects[j] = NULL;
    }
    print("freed", &sums);
}

SITE void use_moved(void)
{
    void *from, *to;
    struct sums sums = {.live = 0};
    make(&from, NULL, "left", 0);
    make(&to, NULL, "moved", 0);
    for (unsigned i = 0, state = 9; i < 40000; i++) {
        size_t size = rounded(next_size(&state, 600));
        void *object = reapMalloc(&from, size);
        if (!reapMove(object, &from, &to)) abort();
        count(&sums, size);
    }
    print("moved", &sums);
}

static void *shared;
static struct sums of_shared[THREADS];
SITE void *share(void *arg)
{
    fill(&shared, &of_shared[(size_t)arg], 40000, 300);
    return NULL;
}

static void use_shared(void)
{
    struct sums sums = {.live = 0};
    make(&shared, NULL, "shared", REAP_SHARED);
    in_threads(share);
    for (size_t i = 0; i < THREADS; i++) {
        sums.live = sums.all += of_shared[i].all;
        sums.live_bytes = sums.all_bytes += of_shared[i].all_bytes;
        sums.largest = of_shared[i].largest;
    }
    print("shared", &sums);
}

SITE void use_entered(void)
{
    void *reap;
    struct sums sums = {.live = 0};
    make(&reap, NULL, "entered", 0);
    reapEnter(&reap);
    for (unsigned i = 0, state = 3; i < 60000; i++) {
        size_t size = rounded(next_size(&state, 300));
        void *object = malloc(size);
        count(&sums, size);
        if (i % 2 != 0) continue;
        uncount(&sums, size);
        free(object);
    }
    reapLeave();
    print("entered", &sums);
}

/* Memory of malloc, for a reap that ends meanwhile. What comes within another charge, or after it, is not
 * counted. */
SITE void use_charged(void)
{
    void *reap;
    struct sums sums = {.live = 0};
    make(&reap, NULL, "charged", 0);
    if (reapChargeAs(&reap, "/url") != 0) abort();
    for (unsigned i = 0, state = 3; i < 60000; i++) {
        size_t size = next_size(&state, 300);
        void *object = malloc(size);
        count(&sums, size);
        if (i == 30000) reapDestroy(&reap);
        if (i % 2 != 0) continue;
        uncount(&sums, size);
        free(object);
    }
    if (reapCharge(NULL) != 0 || !malloc(1 << 20)) abort();
    reapUncharge();
    reapUncharge();
    if (!malloc(1 << 20)) abort();
    print("malloc for charged /url", &sums);
}

static void use_limited(void)
{
    void *reap;
    struct sums sums = {.live = 0};
    make(&reap, NULL, "limited", 0);
    if (reapSetLimit(&reap, 32 << 20) != 0) abort();
    fill(&reap, &sums, 100000, 300);
    print("limited", &sums);
}

static void print_stack(const char *line, const void *whose)
{
    printf("%s: %s\n", (const char *)whose, line);
}

/* Of a reap and one below it, beside one that has more; what was freed is in none. */
SITE void use_stacks(void)
{
    void *upper, *lower, *aside;
    struct sums sums = {.live = 0}, others = {.live = 0};
    make(&upper, NULL, "upper", 0);
    make(&lower, &upper, "lower", 0);
    make(&aside, NULL, "aside", 0);
    static void *freed[20000];
    for (int i = 0; i < 20000; i++) freed[i] = reapMalloc(&upper, 208);
    fill(&upper, &others, 10000, 300);
    fill(&lower, &sums, 30000, 300);
    fill(&aside, &others, 60000, 300);
    for (int i = 0; i < 20000; i++) reapFree(&upper, freed[i]);
    if (!&reap_profile_face_2) abort();
    reap_profile_face_2.largest_stacks(&upper, print_stack, "tree");
    reap_profile_face_2.largest_stacks(NULL, print_stack, "all");
    print("lower", &sums);
}

/* --- all the time ---------------------------------------------------------------------------- */

/* Where this program's malloc goes: read anew from the word that ld.so has written. */
SITE uintptr_t where_malloc_is(void);
SITE uintptr_t where_malloc_is(void) { return (uintptr_t)malloc; }
static uintptr_t where_malloc_was;

static _Atomic(int) ends;
static void *churn(void *arg)
{
    void *reap, *kept[64] = {NULL};
    unsigned state = (unsigned)(size_t)arg;
    reapCreate(&reap, NULL);
    while (!ends) {
        unsigned i = next_size(&state, 64) - 1;
        free(kept[i]);
        kept[i] = malloc(next_size(&state, 5000));
        void *object = reapMalloc(&reap, next_size(&state, 500));
        if (state % 4 == 0) reapFree(&reap, object);
        if (state % 300 == 0) reapFreeAll(&reap);
    }
    for (int i = 0; i < 64; i++) free(kept[i]);
    reapDestroy(&reap);
    return NULL;
}

static void use_churn(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    puts("churns");
    wait_for_line();
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20); /* a lock that fork has left taken ends it */
            for (unsigned j = 0, state = 4; j < 20000; j++) free(malloc(next_size(&state, 3000)));
            _exit(0);
        }
        int status = -1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) printf("child: %d\n", status);
    }
    puts("forked");
    wait_for_line();
    ends = 1;
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    puts(where_malloc_is() == where_malloc_was ? "ended" : "malloc goes elsewhere");
}

static void use(const char *what, const char *path)
{
    static const struct {
        const char *name;
        void (*work)(void);
    } works[] = {{"malloc", use_malloc},   {"kept", use_kept},       {"ended", use_ended},
                 {"cleared", use_cleared}, {"rewound", use_rewound}, {"freed", use_freed},
                 {"moved", use_moved},     {"shared", use_shared},   {"entered", use_entered},
                 {"limited", use_limited}, {"charged", use_charged}, {"stacks", use_stacks},
                 {"churn", use_churn}};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, what) == 0) works[i].work();
    if (strcmp(what, "module") == 0) use_module(path);
}

/* In the build at a fixed address (profiled_fixed) these are jumps of the program's own. */
static void *(*volatile address_of_malloc)(size_t);
static void (*volatile address_of_free)(void *);

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    address_of_malloc = malloc;
    address_of_free = free;
    where_malloc_was = where_malloc_is();
    int forks = strcmp(argv[1], "fork") == 0;
    printf("%d\n", (int)getpid());
    wait_for_line();
    if (forks && fork() != 0) return wait(NULL) < 0;
    if (forks) printf("%d\n", (int)getpid());
    use(forks ? "malloc" : argv[1], argv[2]);
    wait_for_line();
    return 0;
}
