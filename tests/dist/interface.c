/* SPDX-License-Identifier: Apache-2.0 */
/* interface.c: what programs outside rely on: the sizes of what callers allocate, which grow only with a new
 * soname; and the thesis's figures, as a program has them: public header, reapMalloc inline, the library as
 * it is installed. (The calls are abi.sh's matter.) */
#include "hoard.h"
#include "reap.h"
#include "support/expect.h"

/* On machines with pointers of 8 bytes, and there are no others. */
_Static_assert(sizeof(struct reap_options) == 88, "grows only with a new soname");
_Static_assert(sizeof(struct reap_stats) == 56, "grows only with a new soname");
_Static_assert(sizeof(reap_builder) == 24, "grows only with a new soname");
_Static_assert(sizeof(reap_mark) == 48, "grows only with a new soname");
_Static_assert(sizeof(struct reap_front) == 32, "is compiled into programs");
_Static_assert(sizeof(struct hoard_stats) == 96, "grows only with a new soname");
_Static_assert(sizeof(struct hoard_class) == 48, "grows only with a new soname");

/* Four objects bumped out of a chunk; the third is freed onto the heap, where it is found again. */
static void figure_6_1(void)
{
    void *r;
    reapCreate(&r, NULL);
    char *x1 = reapMalloc(&r, 8);
    char *x2 = reapMalloc(&r, 8);
    char *x3 = reapMalloc(&r, 16);
    char *x4 = reapMalloc(&r, 8);
    EXPECT(x2 == x1 + 16 && x3 == x2 + 16 && x4 == x3 + 16);
    reapFree(&r, x3);
    EXPECT(reapMalloc(&r, 16) == x3);
    EXPECT(reapMalloc(&r, 8) == x4 + 16); /* the heap is exhausted: a region again */
    reapDestroy(&r);
    EXPECT(r == NULL);
}

/* Like a region: everything at once, and regions in regions. */
static void regions(void)
{
    void *outer, *inner;
    struct reap_stats stats;
    reapCreate(&outer, NULL);
    reapCreate(&inner, &outer);
    for (int i = 1; i < 10000; i++)
        *(int *)reapMalloc(i % 2 ? &outer : &inner, (size_t)i % 100 + sizeof i) = i;
    EXPECT(reapStats(&inner, &stats) == 0 && stats.live_objects == 4999);
    reapFreeAll(&inner);
    EXPECT(reapStats(&inner, &stats) == 0 && stats.live_objects == 0 && reapMalloc(&inner, 8) != NULL);
    EXPECT(reapStats(&outer, &stats) == 0 && stats.live_objects == 5000 && stats.children == 1);
    reapDestroy(&outer); /* and with it inner */
}

/* Like a heap: one object after the other, in any order, in memory that does not grow. */
static void heaps(void)
{
    void *heap, *slot[100] = {NULL};
    struct reap_stats begun, stats;
    reapCreate(&heap, NULL);
    for (unsigned i = 0, chance = 1; i < 100000; i++) {
        chance = chance * 1103515245 + 12345;
        void **one = &slot[chance / 65536 % 100];
        reapFree(&heap, *one);
        *one = reapMalloc(&heap, 64);
        if (i == 1000) EXPECT(reapStats(&heap, &begun) == 0);
    }
    EXPECT(reapStats(&heap, &stats) == 0 && stats.live_objects == 100 &&
           stats.chunk_bytes <= 2 * begun.chunk_bytes);
    for (int i = 0; i < 100; i++) reapFree(&heap, slot[i]);
    EXPECT(reapStats(&heap, &stats) == 0 && stats.live_objects == 0);
    reapDestroy(&heap);
}

int main(void)
{
    figure_6_1();
    regions();
    heaps();
    return expect_status();
}
