/* SPDX-License-Identifier: Apache-2.0 */
/* What the allocator says of itself is true: known amounts are allocated, and what mallinfo2, malloc_info and
 * malloc_stats say is compared with their sum, and with what the kernel says. With an argument: allocates
 * known amounts and writes malloc_info's answer to standard output. */
#include "support/expect.h"
#include "support/resident.h"

#include <limits.h>
#include <malloc.h>

static struct held {
    size_t size, n;
    char **blocks;
    size_t usable;
} kinds[] = {{24, 5000, NULL, 0},   {100, 3000, NULL, 0},  {1000, 30000, NULL, 0}, {30000, 50, NULL, 0},
             {200000, 20, NULL, 0}, {3 << 20, 3, NULL, 0}, {9 << 20, 2, NULL, 0},  {33 << 20, 1, NULL, 0}};
enum { KINDS = sizeof kinds / sizeof *kinds, LARGE_FROM = 4 };

static void allocate(struct held *kind)
{
    kind->usable = 0;
    for (size_t i = 0; i < kind->n; i++) {
        kind->blocks[i] = malloc(OPAQUE(kind->size));
        memset(kind->blocks[i], 1, kind->size);
        kind->usable += malloc_usable_size(kind->blocks[i]);
    }
}

static void release(const struct held *kind)
{
    for (size_t i = 0; i < kind->n; i++) free(kind->blocks[i]);
}

static void sums(size_t *small, size_t *large, size_t *objects)
{
    *small = *large = *objects = 0;
    for (int k = 0; k < KINDS; k++) {
        *(k < LARGE_FROM ? small : large) += kinds[k].usable;
        *objects += k < LARGE_FROM ? 0 : kinds[k].n;
    }
}

/* malloc_stats has one line with the live bytes; it writes to standard error, which is a file meanwhile. */
static size_t live_in_malloc_stats(void)
{
    char text[4096] = "";
    size_t live = 0;
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    malloc_stats();
    dup2(kept, STDERR_FILENO);
    close(kept);
    EXPECT(pread(fileno(file), text, sizeof text - 1, 0) > 0);
    const char *line = strstr(text, "reap: live ");
    EXPECT(line && sscanf(line, "reap: live %zu bytes", &live) == 1);
    fclose(file);
    return live;
}

static void test_sums(const struct mallinfo2 *before, const struct mallinfo2 *now)
{
    size_t small, large, objects;
    sums(&small, &large, &objects);
    EXPECT(now->uordblks - before->uordblks == small);
    EXPECT(now->hblkhd - before->hblkhd == large);
    EXPECT(now->hblks - before->hblks == objects);
    EXPECT(now->arena + now->hblkhd == now->uordblks + now->hblkhd + now->fordblks);
    EXPECT(now->usmblks >= now->arena + now->hblkhd);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* still called by programs */
    struct mallinfo old = mallinfo();
#pragma GCC diagnostic pop
    EXPECT((size_t)old.uordblks == now->uordblks && (size_t)old.hblkhd == now->hblkhd);
}

/* What is said to be held is what the kernel has given, but for superblocks that are not carved yet. */
static void test_resident(size_t before_bytes, size_t before_rss)
{
    struct mallinfo2 now = mallinfo2();
    size_t held = now.arena + now.hblkhd - before_bytes, rss = resident() - before_rss;
    EXPECT(rss <= held + (3 << 20)); /* a huge page may be there for its first byte */
    EXPECT(held <= rss + (4 << 20));
}

static void test_figures(void)
{
    free(malloc(OPAQUE((size_t)100)));
    size_t said_before = live_in_malloc_stats(); /* and tmpfile has allocated for the first time */
    size_t rss = resident();
    struct mallinfo2 before = mallinfo2();
    for (int k = 0; k < KINDS; k++) allocate(&kinds[k]);
    struct mallinfo2 now = mallinfo2();
    test_sums(&before, &now);
    test_resident(before.arena + before.hblkhd, rss);
    EXPECT(live_in_malloc_stats() - said_before ==
           now.uordblks + now.hblkhd - before.uordblks - before.hblkhd);

    for (int k = 0; k < KINDS; k++) release(&kinds[k]);
    now = mallinfo2();
    EXPECT(now.uordblks == before.uordblks && now.hblkhd == before.hblkhd && now.hblks == before.hblks);
    EXPECT(now.keepcost <= now.fordblks);
    EXPECT(malloc_trim(0) == 1);
    now = mallinfo2();
    EXPECT(now.keepcost == 0);
    EXPECT(now.arena + now.hblkhd <= before.arena + before.hblkhd);
    EXPECT(resident() <= rss + (2 << 20)); /* metadata stays */
    EXPECT(malloc_trim(0) == 0);           /* nothing is left to give */
}

/* More than 2 GiB, not touched. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void test_great_figures(void)
{
    void *great = malloc(OPAQUE((size_t)5 << 30));
    if (!great) return;
    EXPECT(mallinfo2().hblkhd >= (size_t)5 << 30);
    EXPECT(mallinfo().hblkhd == INT_MAX);
    free(great);
}
#pragma GCC diagnostic pop

int main(int argc, char **argv)
{
    (void)argv;
    static char *places[50000];
    char **next = places;
    for (int k = 0; k < KINDS; k++) {
        kinds[k].blocks = next;
        next += kinds[k].n;
    }
    if (argc > 1) {
        allocate(&kinds[1]);
        allocate(&kinds[5]);
        size_t small, large, objects;
        sums(&small, &large, &objects);
        fprintf(stderr, "%zu %zu\n", small + large, large);
        return malloc_info(0, stdout);
    }
    test_figures();
    test_great_figures();
    return expect_status();
}
