/* SPDX-License-Identifier: Apache-2.0 */
/* huge_pages.c: a reap on a source of chunks: here, huge pages.
 *
 *     cc -o huge_pages huge_pages.c $(pkg-config --cflags --libs reap)
 *     ./huge_pages
 *
 * Reserved huge pages (vm.nr_hugepages) where there are any; else memory that the kernel is asked to back
 * with transparent ones. A source for a file, a NUMA node or a device has the same two functions.
 */
#include <reap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { HUGE_PAGE = 2 << 20, OBJECTS = 400000, OBJECT = 96 };

struct pages {
    size_t reserved, transparent, ordinary; /* chunks by kind, of those that were taken */
};

static size_t whole_pages(size_t size) { return (size + HUGE_PAGE - 1) & -(size_t)HUGE_PAGE; }

/* The reap asks for multiples of 4096 bytes, aligned to 4096; more than that is given. */
static void *take(size_t size, void *arg)
{
    struct pages *pages = arg;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    size = whole_pages(size);
    char *chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
    if (chunk != MAP_FAILED) return pages->reserved++, chunk;

    /* Only whole, aligned huge pages can be transparent ones: map more, and cut off the ends. */
    char *wide = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (wide == MAP_FAILED) return NULL; /* the allocation fails, with ENOMEM */
    chunk = (char *)whole_pages((uintptr_t)wide);
    if (chunk > wide) munmap(wide, (size_t)(chunk - wide));
    munmap(chunk + size, (size_t)(wide + HUGE_PAGE - chunk));
    if (madvise(chunk, size, MADV_HUGEPAGE) == 0)
        pages->transparent++;
    else
        pages->ordinary++; /* a kernel without them */
    return chunk;
}

static void give(void *chunk, size_t size, void *arg)
{
    (void)arg;
    munmap(chunk, whole_pages(size));
}

/* Nanoseconds a step of a walk from object to object in an order that no prefetcher guesses; < 0: no memory.
 */
static double walk(void **reap)
{
    struct timespec begin, end;
    void **first = reapMalloc(reap, OBJECT), **last = first;
    void ***all = reapMalloc(reap, OBJECTS * sizeof *all);
    if (!first || !all) return -1;
    for (int i = 0; i < OBJECTS; i++)
        if (!(all[i] = reapMalloc(reap, OBJECT))) return -1;
    for (size_t i = 0, at = 0; i < OBJECTS; i++, at = (at + 104729) % OBJECTS) last = *last = all[at];
    *last = first;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 2 * OBJECTS; i++) first = *first;
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (!first) return -1; /* never; but the walk has to be walked */
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
           (2 * OBJECTS);
}

int main(void)
{
    void *reap;
    struct pages pages = {0};
    struct reap_options options = {.size = sizeof options,
                                   .first_chunk = HUGE_PAGE,
                                   .max_chunk = HUGE_PAGE,
                                   .source = {take, give, &pages}};
    if (reapCreateWith(&reap, NULL, &options) != 0) return perror("reapCreateWith"), EXIT_FAILURE;
    double on_huge = walk(&reap);
    struct reap_stats stats;
    reapStats(&reap, &stats);
    reapDestroy(&reap);
    reapCreate(&reap, NULL);
    double ordinary = reap ? walk(&reap) : -1;
    reapDestroy(&reap);
    if (on_huge < 0 || ordinary < 0) return fprintf(stderr, "huge_pages: no memory\n"), EXIT_FAILURE;
    printf("%zu chunks, %zu bytes: %zu of reserved huge pages, %zu of transparent ones, %zu of neither\n",
           stats.chunks, stats.chunk_bytes, pages.reserved, pages.transparent, pages.ordinary);
    printf("a step of the walk: %.1f ns; in a reap that has no source: %.1f ns\n", on_huge, ordinary);
    return EXIT_SUCCESS;
}
