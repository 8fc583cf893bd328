/* SPDX-License-Identifier: Apache-2.0 */
/* What harden=1 and harden=2 tell, and what they must not. `hardened` lists the cases: the least level, the
 * name and the end. `hardened NAME` prints the line that must come on standard error, or "(none)", and makes
 * the mistake; after a mistake that nothing finds it prints "missed". */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void free_sized(void *block, size_t size) __attribute__((weak)); /* of C23, and not of this libc */

enum { SMALL = 40, MEDIUM = 6000, LARGE = 300 * 1024, HUGE = 40 << 20 };

static void expect(const char *call, const void *pointer, const char *what)
{
    printf("reap: %s(0x%lx): %s\n", call, (unsigned long)pointer, what);
    fflush(stdout);
}

static void *get(size_t size)
{
    char *volatile block = malloc(size);
    if (block == NULL) exit(99);
    return block;
}

enum { MIXED_MOST = 2040 }; /* bytes of fresh blocks that come in random order, as libreap-malloc(7) says */
static const size_t sizes[] = {SMALL, MEDIUM, LARGE};
static const char behind[] = "memory behind it was written to", before[] = "memory before it was written to",
                  written[] = "memory was written to after it was freed", twice[] = "freed twice",
                  unknown[] = "freed before, or never allocated";

enum { ABORT = 134, FAULT = 139, FINE = 0 };
static struct kind {
    const char *name;
    int level, ends;
    unsigned of; /* a bit for each of the sizes */
    void (*make)(size_t size);
} table[40];
static size_t kinds;

/* Begins a case, from which level on it ends so, and for which sizes. */
#define KIND(name, level, ends, of)                                                                          \
    static void name(size_t size);                                                                           \
    static __attribute__((constructor)) void name##_is_a_kind(void)                                          \
    {                                                                                                        \
        table[kinds++] = (struct kind){#name, level, ends, of, name};                                        \
    }                                                                                                        \
    static void name(size_t size)

/* --- cases for three sizes ------------------------------------------------------------------- */

KIND(overflow, 1, ABORT, 3)
{
    char *block = get(size);
    expect("free", block, behind);
    block[size] ^= 1;
    free(block);
}

/* Behind the canary, where the block has room left. */
KIND(overflow_further, 1, ABORT, 7)
{
    size = size == SMALL ? 1300 : size - 100;
    char *block = get(size);
    expect("free", block, behind);
    block[size + (size < LARGE / 2 ? 31 : 7)] ^= 1;
    free(block);
}

KIND(overflow_resized, 1, ABORT, 7)
{
    char *block = realloc(get(size), size - 5);
    expect("realloc", block, behind);
    block[size - 5] ^= 1;
    block = realloc(block, size);
}

KIND(overflow_asked, 1, ABORT, 3)
{
    char *block = get(size);
    expect("malloc_usable_size", block, behind);
    memset(block, 'x', size);
    block[size] ^= 1;
    malloc_usable_size(block);
}

KIND(free_twice, 1, ABORT, 7)
{
    void *block = get(size);
    free(block);
    expect("free", block, twice);
    free(block);
}

KIND(realloc_freed, 1, ABORT, 7)
{
    void *block = get(size);
    free(block);
    expect("realloc", block, twice);
    block = realloc(block, 2 * size);
}

KIND(free_inside, 1, ABORT, 7)
{
    char *block = get(size);
    expect("free", block + 16, "not the start of a block");
    free(block + 16);
}

KIND(free_of_another_size, 1, ABORT, 7)
{
    char *block = get(size);
    expect("free_sized", block, "of another size");
    free_sized(block, size - 1);
}

/* --- cases for small blocks ------------------------------------------------------------------ */

KIND(underflow, 1, ABORT, 1)
{
    char *other = NULL, *block = NULL;
    for (int i = 0; i < 4000 && other == NULL;
         i++) { /* the block before must be one of the same superblock */
        block = get(size);
        if ((uintptr_t)block % 65536 >= 4096) other = block;
    }
    expect("free", block, before);
    block[-1] ^= 1;
    free(block);
}

KIND(never_allocated, 1, ABORT, 1)
{
    enum { STEP = 48 }; /* from one block of 40 bytes to the next */
    char *block = get(size), *slot = (char *)((uintptr_t)block & ~(uintptr_t)65535);
    char *far = slot + 65536 / STEP / 2 * STEP;
    expect("free", far, unknown);
    free(far);
}

static void churn(size_t size)
{
    for (int i = 0; i < 100000; i++) free(get(size));
}

KIND(write_after_free, 1, ABORT, 3)
{
    char *block = get(size);
    free(block);
    expect("malloc", block, written);
    block[size / 2] ^= 1;
    churn(size);
}

KIND(write_after_free_at_start, 1, ABORT, 3)
{
    char *block = get(size);
    free(block);
    expect("malloc", block, written);
    block[3] ^= 1;
    churn(size);
}

/* --- accesses that the processor stops ------------------------------------------------------- */

static void touch(volatile char *at)
{
    printf("(none)\n");
    fflush(stdout);
    *at = 1;
}

KIND(write_none, 1, ABORT, 1) { overflow(size * 0); }

KIND(touch_behind, 2, FAULT, 4) { touch((char *)get(size) + (size | 4095) + 1); }

/* --- what is no mistake ---------------------------------------------------------------------- */

static void must(bool good, const char *what)
{
    if (good) return;
    printf("not so: %s\n", what);
    exit(96);
}

static bool is_zero(const char *block, size_t size)
{
    return size == 0 || (block[0] == 0 && memcmp(block, block + 1, size - 1) == 0);
}

static uint64_t state = 88172645463325252u;
static size_t any(size_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (size_t)(state % below);
}

static size_t any_size(void) { return any(40) == 0 ? any(500000) : any(8) == 0 ? any(20000) : any(600); }

/* Fresh memory reads as zero, contents stay, and the usable size is the one asked for. */
static void work(size_t turns)
{
    enum { N = 300 };
    static __thread unsigned char *at[N];
    static __thread size_t sized[N];
    for (size_t turn = 0; turn < turns; turn++) {
        size_t i = any(N), size = any_size(), have = at[i] != NULL ? sized[i] : 0;
        for (size_t k = 0; k < have; k += have / 8 + 1) must(at[i][k] == (unsigned char)(i + k), "contents");
        bool grows = any(3) == 0;
        if (grows) {
            at[i] = realloc(at[i], size);
            must(at[i] != NULL, "realloc");
            for (size_t k = 0; k < have && k < size; k += have / 8 + 1)
                must(at[i][k] == (unsigned char)(i + k), "contents after realloc");
        } else {
            free(at[i]);
            size_t alignment = (size_t)16 << any(10);
            at[i] = any(5) == 0   ? aligned_alloc(alignment, size)
                    : any(2) == 0 ? calloc(1, size)
                                  : malloc(size);
            must(at[i] != NULL && is_zero((char *)at[i], size), "fresh memory is zero");
        }
        must(malloc_usable_size(at[i]) == size, "usable size");
        sized[i] = size;
        for (size_t k = 0; k < size; k++) at[i][k] = (unsigned char)(i + k);
    }
    for (int i = 0; i < N; i++) free(at[i]);
}

static void *worker(void *arg)
{
    (void)arg;
    work(20000);
    return NULL;
}

KIND(threads, 1, FINE, 1)
{
    (void)size;
    puts("(none)");
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) must(pthread_create(&thread[i], NULL, worker, NULL) == 0, "a thread");
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            work(1000);
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0, "the child of a fork");
    }
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
}

static void *first_nothing_alone(void *arg)
{
    free(malloc(1));
    return arg;
}

KIND(alone, 1, FINE, 1)
{
    puts("(none)");
    work(size * 1000);
}

/* Returns how many of a hundred fresh blocks are as far from the one before as that is from its own. */
static int in_order(size_t size)
{
    enum { N = 400 };
    char *block[N];
    int same = 0;
    for (int i = 0; i < N; i++) block[i] = get(size);
    for (int i = 2; i < N; i++) same += block[i] - block[i - 1] == block[i - 1] - block[i - 2];
    for (int i = 0; i < N; i++) free(block[i]);
    return same * 100 / (N - 2);
}

/* The places of fresh blocks, up to the size that libreap-malloc(7) and SECURITY.md name, and above it; and
 * how soon a freed one comes back. */
KIND(places, 1, FINE, 1)
{
    puts("(none)");
    static const size_t mixed[] = {0, 200, 1000, MIXED_MOST - 40}, others[] = {MIXED_MOST - 39, 4000, 20000};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        must(in_order(size + mixed[i]) < 50, "fresh blocks come in random order");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        must(in_order(size + others[i]) > 70, "greater ones come one behind the other, as the pages say");
    char *block = get(size);
    free(block);
    for (int i = 0; i < 16; i++) must(get(size) != (void *)block, "a freed block comes back late");
}

KIND(late, 1, FINE, 7)
{
    puts("(none)");
    char *block = get(size);
    uintptr_t first = (uintptr_t)block;
    free(block);
    must((uintptr_t)get(size) != first, "a freed block comes back late");
}

/* Objects of size 0 have addresses of their own, also where no class has their alignment. */
KIND(nothing, 1, FINE, 1)
{
    puts("(none)");
    enum { N = 6000 };
    static char *at[N];
    for (int i = 0; i < N; i++) at[i] = get(size * 0);
    for (int i = 1; i < N; i++) must(at[i] != at[i - 1], "objects of size 0 differ");
    at[0] = realloc(at[0], 10);
    must(at[0] != NULL && is_zero(at[0], 10), "it grows");
    at[0] = realloc(at[0], 0);
    for (int i = 0; i < N; i++) free(at[i]);
    void *last = get(0);
    free(last);
    must(posix_memalign(&last, 1 << 20, 0) == 0 && malloc_usable_size(last) == 0, "an aligned one");
    free(realloc(last, 0));
    fflush(stdout);
}

/* A large object that nobody touches has no memory, in no round: the next one of its kind needs not be
 * cleared. */
KIND(untouched, 1, FINE, 4)
{
    enum { ROUNDS = 100, FAULTS = 10 };
    struct rusage before_it, after;
    puts("(none)");
    for (int i = -ROUNDS; i < ROUNDS; i++) {
        if (i == 0) getrusage(RUSAGE_SELF, &before_it);
        free(get(size));
    }
    getrusage(RUSAGE_SELF, &after);
    must(after.ru_minflt - before_it.ru_minflt < ROUNDS * FAULTS, "it is not touched");
}

/* Where the process may have no more data, a guard page stays one when its object is freed, and serves
 * nobody. */
KIND(data_limited, 1, FINE, 1)
{
    enum { N = 8, BIG = 8 << 20 };
    char *big[N], *more = get(8 * HUGE); /* so that the frees are no fall */
    struct rlimit none = {4096, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    puts("(none)");
    fflush(stdout);
    for (int i = 0; i < N; i++) memset(big[i] = get(BIG - 5000), 1, BIG - 5000);
    must(setrlimit(RLIMIT_DATA, &none) == 0, "a limit");
    for (int i = 0; i < N / 2; i++) free(big[i]);
    must(setrlimit(RLIMIT_DATA, &all) == 0, "no limit");
    for (size_t i = 0; i < N / 2 * BIG / (25 * size) * 2; i++) memset(get(25 * size), 1, 25 * size);
    free(more);
}

KIND(huge, 1, FINE, 3)
{
    puts("(none)");
    char *block = get(HUGE);
    must(is_zero(block, HUGE), "fresh memory is zero");
    block[HUGE - 1] = 1;
    block = realloc(block, HUGE + (20 << 20));
    must(block != NULL && block[HUGE - 1] == 1, "contents");
    block = realloc(block, size);
    free(block);
}

/* Fences have half of the mappings of a process: with so many objects others can be made still. */
KIND(many, 2, FINE, 1)
{
    enum { N = 60000, OF = 20000 };
    static char *at[N];
    puts("(none)");
    for (int i = 0; i < N; i++) {
        must((at[i] = malloc(OF)) != NULL, "an object among many");
        at[i][OF - 1] = 1;
    }
    pthread_t thread;
    must(pthread_create(&thread, NULL, first_nothing_alone, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    must(malloc(size) != NULL, "a small block");
    must((at[0] = realloc(at[0], 2 * OF)) != NULL && at[0][OF - 1] == 1, "it grows");
    for (int i = 0; i < N; i++) free(at[i]);
}

/* Fences that were given back can be made anew. */
KIND(touch_behind_late, 2, FAULT, 4)
{
    for (int i = 0; i < 20000; i++) free(realloc(get(size), size + 100000));
    touch_behind(size);
}

/* The mallocs until a freed block serves again, 0: none of them did. */
static int mallocs_until(size_t size)
{
    enum { MOST = 40 };
    char *other[MOST], *block = get(size);
    int n = 0, found = 0;
    uintptr_t first = (uintptr_t)block;
    free(block);
    for (; n < MOST && found == 0; n++) {
        other[n] = get(size);
        if ((uintptr_t)other[n] == first) found = n + 1;
        free(other[n]);
    }
    return found;
}

/* A malloc that fails does not shorten the wait of later blocks. */
KIND(late_after_failure, 1, FINE, 1)
{
    puts("(none)");
    int before_it = mallocs_until(2000);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 16; i++) free(get(16000));
        must(malloc((size_t)1 << 47) == NULL, "a malloc of more than there is");
    }
    int after = mallocs_until(2000);
    must(size != 0 && (after == 0 || (before_it != 0 && after >= before_it)),
         "blocks wait as long as before");
}

KIND(too_much, 1, FINE, 7)
{
    puts("(none)");
    char *block = get(size);
    volatile size_t much = (size_t)PTRDIFF_MAX - size, more = SIZE_MAX - size;
    errno = 0;
    must(malloc(much) == NULL && errno == ENOMEM, "malloc of too much");
    must(malloc(more) == NULL, "malloc of more");
    must(realloc(block, much) == NULL && realloc(block, more) == NULL, "realloc of too much");
    must(aligned_alloc(64, much) == NULL && calloc(much, 2) == NULL, "aligned_alloc of too much");
    free(block);
}

int main(int argc, char **argv)
{
    bool found = argc < 2;
    for (size_t i = 0; i < kinds; i++)
        for (size_t k = 0; k < 3; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s/%zu", table[i].name, sizes[k]);
            if ((table[i].of >> k & 1) == 0) continue;
            if (argc < 2) printf("%d %s %d\n", table[i].level, name, table[i].ends);
            if (argc < 2 || strcmp(argv[1], name) != 0) continue;
            found = true;
            table[i].make(sizes[k]);
            if (table[i].ends != FINE) puts("missed");
        }
    return found ? 0 : 95;
}
