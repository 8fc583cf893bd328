/* SPDX-License-Identifier: Apache-2.0 */
/* check_exhaustion.c: too little address space. Every call says NULL and ENOMEM, nothing is lost, and what is
 * freed serves again. RLIMIT_AS is set in children; it makes mmap fail at the point that is wanted. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "heap/heap.h"
#include "hoard/chunk_provider.h"

#include <sys/resource.h>

static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    expect(statm != NULL && fscanf(statm, "%lu", &pages) == 1, "no /proc/self/statm");
    fclose(statm);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* From here on `more` bytes of address space are to be had. */
static void limit_to(size_t more)
{
    size_t limit = address_space() + more;
    struct rlimit as = {limit, RLIM_INFINITY};
    expect(setrlimit(RLIMIT_AS, &as) == 0, "setrlimit");
}

static void no_limit(void)
{
    struct rlimit as = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &as);
}

enum { ALL = 400000 };

static void *all[ALL];

static size_t allocate_all(size_t size)
{
    size_t n = 0;
    errno = 0;
    while (n < ALL && (all[n] = hoard_malloc(size)) != NULL) memset(all[n++], 1, size < 100 ? size : 100);
    expect(n == ALL || errno == ENOMEM, "errno is not ENOMEM");
    return n;
}

static void free_all(size_t n)
{
    for (size_t i = 0; i < n; i++) hoard_free(all[i]);
}

/* --- until there is nothing left -------------------------------------------------------------- */

static void fill_and_empty(void *arg)
{
    static const size_t sizes[] = {100, 1000, 8000, 30000, 100000, 3000000, 5000000};
    size_t more = (uintptr_t)arg;
    free(malloc(1000)); /* libc has its arena */
    limit_to(more);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = allocate_all(sizes[i]);
        expect(n * sizes[i] >= more / 2 - 8 * MIB, "much less than there was to have");
        free_all(n);
        size_t again = allocate_all(sizes[i]);
        expect(again + again / 8 + 70 >= n, "what was freed is lost");
        free_all(again); /* and must serve the next size */
    }
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "accounts");
}

TEST(full_and_empty_again, .times = PATHS)
{
    use_path(_i, NULL);
    struct outcome said = run_child(fill_and_empty, (void *)(48 * MIB));
    ck_assert_msg(said.status == 0, "%s", said.text);
}

/* --- failing at each point --------------------------------------------------------------------- */

/* A bit of everything; whatever fails must fail cleanly. */
static unsigned try_everything(void)
{
    static void *held[64];
    unsigned failed = 0, n = 0;
    for (size_t size = 8; size < 12 * MIB; size *= 3) {
        errno = 0;
        void *p = hoard_malloc(size);
        if (p == NULL) expect(errno == ENOMEM, "malloc: errno");
        failed += p == NULL;
        if (p != NULL) memset(p, 7, size < 5000 ? size : 5000);
        void *q = hoard_realloc(p, size * 2);
        failed += q == NULL;
        if (q == NULL && p != NULL) expect(*(char *)p == 7, "realloc that failed changed the block");
        if (q != NULL && p != NULL) expect(*(char *)q == 7, "realloc lost contents");
        held[n++] = q != NULL ? q : p;
        held[n++] = p = hoard_calloc(size, 1);
        failed += p == NULL;
        if (p != NULL) expect(*(char *)p == 0, "calloc");
        held[n++] = p = hoard_aligned_alloc(256, size);
        failed += p == NULL;
    }
    void *chunk = chunk_alloc(20000, NULL, NULL), *large_chunk = chunk_alloc(200000, NULL, NULL);
    failed += (chunk == NULL) + (large_chunk == NULL);
    if (chunk != NULL) chunk_free(chunk);
    if (large_chunk != NULL) chunk_free(large_chunk);
    for (unsigned i = 0; i < n; i++) hoard_free(held[i]);
    return failed;
}

static void fail_early_then_go_on(void *arg)
{
    free(malloc(1000));
    limit_to((uintptr_t)arg);
    unsigned failed = try_everything();
    fprintf(stderr, "%u", failed);
    expect(heap_is_valid(), "accounts");
    no_limit();
    expect(try_everything() == 0, "it does not recover");
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "accounts after recovery");
}

TEST(memory_may_end_at_any_point, .times = PATHS)
{
    use_path(_i, NULL);
    unsigned last = 1000000;
    bool some_failed = false, none_failed = false;
    for (size_t more = 0; more < 96 * MIB; more += more < MIB ? 64 * KIB : more / 16) {
        struct outcome said = run_child(fail_early_then_go_on, (void *)more);
        ck_assert_msg(said.status == 0, "with %zu bytes: status %x, %s", more, (unsigned)said.status,
                      said.text);
        last = (unsigned)atoi(said.text);
        some_failed |= last != 0;
        none_failed |= last == 0;
    }
    ck_assert(some_failed);
    ck_assert(none_failed);
}

/* The same after it has started, by threads. */
static void *until_full(void *arg)
{
    (void)arg;
    void *last = NULL;
    for (void *p; (p = hoard_malloc(3000)) != NULL; last = p) *(void **)p = last;
    bool right = errno == ENOMEM;
    while (last != NULL) {
        void *before = *(void **)last;
        hoard_free(last);
        last = before;
    }
    return right ? NULL : (void *)1;
}

static void threads_until_full(void *arg)
{
    (void)arg;
    pthread_t threads[3];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KIB);
    limit_to(300 * MIB); /* libc takes 128 MiB for the arena of a thread, if it can */
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3; i++)
            expect(pthread_create(&threads[i], &small, until_full, NULL) == 0, "no thread");
        for (unsigned i = 0; i < 3; i++) {
            void *wrong;
            pthread_join(threads[i], &wrong);
            expect(wrong == NULL, "errno of a thread is not ENOMEM");
        }
    }
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "accounts");
    hoard_trim(0);
    expect(held_bytes() == 0, "something is held");
}

TEST(threads_come_to_the_end_together, .times = PATHS)
{
    use_path(_i, NULL);
    struct outcome said = run_child(threads_until_full, NULL);
    ck_assert_msg(said.status == 0, "status %x: %s", (unsigned)said.status, said.text);
}

int main(void) { return run_tests((struct suite){0}); }
