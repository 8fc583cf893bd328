/* SPDX-License-Identifier: Apache-2.0 */
/* remote_free.c: free(), realloc() and malloc_usable_size() of reaps' objects, from any thread. Linked to
 * libreap-malloc; no Check, which would run on the malloc that is tested. */
#include <malloc.h>
#include <stdatomic.h>

#include "reap.h"
#include "support/expect.h"

enum { WALKED = 1000 };

static void *reap;
static unsigned char *objects[WALKED];

static struct reap_stats stats(void)
{
    struct reap_stats stats;
    EXPECT(reapStats(&reap, &stats) == 0);
    return stats;
}

static void in_this_thread(void)
{
    char *object = OPAQUE(reapMalloc(&reap, 100));
    EXPECT(malloc_usable_size(object) == 112);
    strcpy(object, "text");
    object = realloc(object, 112);
    char *moved = OPAQUE(realloc(object, 1000));
    EXPECT(moved != object && strcmp(moved, "text") == 0);
    void *owner;
    EXPECT(reapOf(moved, &owner) == 0 && owner == reap);
    EXPECT(malloc_usable_size(moved) == 1008);
    EXPECT(stats().live_objects == 1);
    EXPECT(stats().live_bytes == 1008);
    moved = realloc(moved, 100000);
    EXPECT(strcmp(moved, "text") == 0 && stats().live_bytes == 100000);
    moved = reapRealloc(&reap, moved, 200000);
    free(OPAQUE(moved));
    EXPECT(stats().live_objects == 0);
    EXPECT(stats().chunks == 1);
    free(OPAQUE(reapMalloc(&reap, 0)));
    free(OPAQUE(reapStrdup(&reap, "text")));
    EXPECT(stats().live_objects == 0);
}

static unsigned char *_Atomic measured;
static atomic_bool over;

static void *measurer(void *unused)
{
    while (!over) {
        unsigned char *object = measured;
        if (!object) continue;
        EXPECT(malloc_usable_size(object) == 48);
        uintptr_t before = (uintptr_t)object;
        object = realloc(object, 40);
        EXPECT((uintptr_t)object == before);
        free(OPAQUE(object));
        measured = NULL;
    }
    return unused;
}

/* Makes and frees objects behind it, so that it is the last one before the bump pointer by turns, and in
 * heap mode, and in a chunk that is left. */
static void churn_behind(unsigned round)
{
    void *behind[6];
    for (unsigned i = 0; i < 40; i++) {
        for (unsigned n = 0; n < 6; n++) behind[n] = reapMalloc(&reap, (round * 7 + n * 50) % 400);
        for (unsigned n = 6; n-- > 0;) reapFree(&reap, behind[(n + i) % 6]);
    }
}

static void measured_meanwhile(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, measurer, NULL);
    for (unsigned round = 0; round < 8000; round++) {
        if (round % 8 == 0) {
            reapDestroy(&reap);
            reapCreate(&reap, NULL);
        }
        for (unsigned n = 0; n < round % 100; n++) reapMalloc(&reap, 100); /* up to a chunk's end, and over */
        measured = reapMalloc(&reap, 48);
        for (unsigned tries = 0; measured && tries < 1000; tries++) churn_behind(round);
        while (measured) {
        }
    }
    over = true;
    pthread_join(thread, NULL);
}

/* What is pending when a reap ends goes with it. */
static void pending_at_the_end(void)
{
    void *child;
    for (int i = 0; i < 100; i++) {
        reapCreate(&child, &reap);
        void *small = OPAQUE(reapMalloc(&child, 100)), *other = OPAQUE(reapMalloc(&child, 100));
        free(small);
        if (i % 3 == 0) reapFreeAll(&child);
        free(OPAQUE(reapMalloc(&child, 100))); /* where a pending one was */
        if (i % 3 != 0 && realloc(other, 10000) == NULL) EXPECT(0);
        if (i % 2) reapFreeAll(&child);
        reapDestroy(&child);
    }
    EXPECT(stats().children == 0);
}

static unsigned visits;

static void *free_others(void *object)
{
    for (unsigned i = 0; i < WALKED; i++)
        if (objects[i] != object) free(OPAQUE(objects[i]));
    return object;
}

/* Other threads free what the walk will come to; then the reap takes in what they have freed. */
static int free_elsewhere(void *object, size_t size, void *unused)
{
    (void)unused;
    if (size != 48) return 0; /* one of those that are made here */
    if (visits++ == 0) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, free_others, object) == 0);
        pthread_join(thread, NULL);
        stats();
    }
    EXPECT(reapMalloc(&reap, 9000) != NULL);
    return 0;
}

static int allocate(void *object, size_t size, void *unused)
{
    (void)object, (void)unused;
    EXPECT(size != 48 || reapMalloc(&reap, 9000) != NULL);
    return 0;
}

/* The same, but a walk within the walk takes in what they have freed, and goes on behind the object that this
 * one comes to next. */
static int walk_again(void *object, size_t size, void *unused)
{
    (void)unused;
    if (size != 48) return 0;
    if (visits++ > 0) return 0;
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, free_others, object) == 0);
    pthread_join(thread, NULL);
    EXPECT(reapWalk(&reap, allocate, NULL) == 0);
    return 0;
}

static int count(void *object, size_t size, void *kept)
{
    (void)object;
    *(unsigned *)kept += size == 48;
    return 0;
}

static void freed_while_walked(void)
{
    unsigned kept = 0;
    visits = 0;
    reapCreate(&reap, NULL);
    for (unsigned i = 0; i < WALKED; i++) objects[i] = reapMalloc(&reap, 40);
    EXPECT(reapWalk(&reap, free_elsewhere, NULL) == 0 && visits == 2);
    EXPECT(reapWalk(&reap, count, &kept) == 0 && kept == 1);
    EXPECT(stats().live_objects == 1 + visits);
    visits = kept = 0;
    reapFreeAll(&reap);
    for (unsigned i = 0; i < WALKED; i++) objects[i] = reapMalloc(&reap, 40);
    EXPECT(reapWalk(&reap, walk_again, NULL) == 0 && visits == 2);
    EXPECT(reapWalk(&reap, count, &kept) == 0 && kept == 1);
    reapDestroy(&reap);
}

int main(void)
{
    freed_while_walked();
    reapCreate(&reap, NULL);
    in_this_thread();
    measured_meanwhile();
    pending_at_the_end();
    reapDestroy(&reap);
    return expect_status();
}
