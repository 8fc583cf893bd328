/* SPDX-License-Identifier: Apache-2.0 */
/* reap_apart.c: what free(), realloc() and the reaps' own calls do with objects that lie apart; run by
 * reap_apart.sh with the options that make them so, linked to libreap-malloc. */
#include <malloc.h>
#include <time.h>

#include "reap.h"
#include "support/expect.h"

static void *reap;

static struct reap_stats stats_of(void **handle)
{
    struct reap_stats stats;
    reapStats(handle, &stats);
    return stats;
}

static void *free_it(void *object)
{
    free(object);
    return NULL;
}

/* free() knows an object from a block, and takes it to its reap from any thread. */
CASE(freed_by_free)
{
    pthread_t thread;
    free(reapMalloc(&reap, 1));
    free(reapMalloc(&reap, 100000));
    pthread_create(&thread, NULL, free_it, reapMalloc(&reap, 50));
    pthread_join(thread, NULL);
    EXPECT(stats_of(&reap).live_objects == 0);
}

static void *resize_it(void *object) { return realloc(object, 5000); }

CASE(resized_by_realloc)
{
    pthread_t thread;
    void *object = memset(reapMalloc(&reap, 50), 7, 50), *owner;
    EXPECT(malloc_usable_size(object) == 64);
    pthread_create(&thread, NULL, resize_it, object);
    pthread_join(thread, &object);
    EXPECT(((char *)object)[49] == 7);
    EXPECT(reapOf((char *)object + 4999, &owner) == 0 && owner == reap);
    EXPECT(stats_of(&reap).live_bytes == 5008);
    reapFree(&reap, object);
}

CASE(nobody_else_is_taken_for_one)
{
    void *block = malloc(100), *owner, *object = reapMalloc(&reap, 100);
    EXPECT(reapOf(block, &owner) == -1);
    EXPECT(reapOf((char *)object + 112, &owner) == -1);
    EXPECT(reapOf(object, &owner) == 0 && owner == reap);
    reapFree(&reap, object);
    EXPECT(reapOf(OPAQUE(object), &owner) == -1);
    free(block);
}

CASE(aligned_ones)
{
    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        char *object = reapAlignedAlloc(&reap, alignment, 100);
        EXPECT((size_t)object % alignment == 0);
        EXPECT(reapUsableSize(object) == 112);
        memset(OPAQUE(object), 1, 112);
        if (alignment % 3 == 1) reapFree(&reap, object);
    }
    reapFreeAll(&reap);
    EXPECT(stats_of(&reap).live_objects == 0);
}

/* More than are remembered, so that the oldest are forgotten while others come in their places. */
CASE(many_come_and_go)
{
    enum { N = 1000 };
    static char *objects[N];
    for (int i = 0; i < 100 * N; i++) {
        char **object = &objects[i * 7919 % N];
        if (*object) EXPECT(**object == (char)(size_t)*object);
        reapFree(&reap, *object);
        *object = reapMalloc(&reap, (size_t)i * 31 % 700);
        reapUsableSize(*object);
        **object = (char)(size_t)*object;
    }
    EXPECT(stats_of(&reap).live_objects == N);
    EXPECT(stats_of(&reap).chunks >= N);
    reapFreeAll(&reap);
}

/* Else each would take a time in proportion to all that the reap has. */
CASE(a_rewind_looks_only_at_what_goes)
{
    reap_mark mark;
    char *older = OPAQUE((char *)reapMalloc(&reap, 100));
    older[100]++; /* a mistake that a look would find with harden=1 */
    reapMark(&reap, &mark);
    reapRewind(&reap, &mark);
    older[100]--;
    reapFreeAll(&reap);
}

enum { SECONDS = 1, BLOCKS = 64, BLOCK = 70000 };
static volatile bool over;

static void *make_blocks(void *none)
{
    while (!over) {
        void *blocks[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(BLOCK);
        for (int i = 0; i < BLOCKS; i++) EXPECT(!blocks[i] || malloc_usable_size(blocks[i]) >= BLOCK);
        for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    }
    return none;
}

/* Another thread's block may have the memory of a large object as soon as it is back. */
CASE(blocks_where_objects_were)
{
    pthread_t thread;
    pthread_create(&thread, NULL, make_blocks, NULL);
    for (time_t end = time(NULL) + SECONDS; time(NULL) <= end;) reapFree(&reap, reapMalloc(&reap, 3 * BLOCK));
    over = true;
    pthread_join(thread, NULL);
}

int main(void)
{
    reapCreate(&reap, NULL);
    run_cases(NULL);
    reapDestroy(&reap);
    return expect_status();
}
