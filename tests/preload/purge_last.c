/* SPDX-License-Identifier: Apache-2.0 */
/* Run by preload-purge.sh, with purge_thread=1. One block lives in each of many superblocks, and the
 * library's thread sleeps. Then these blocks are freed, and the program does nothing: their superblocks go
 * back all the same. This thread frees them, with more memory in use than caches have; then another one, in
 * whose batches they wait, and one whose first call is a free. */
#include "support/expect.h"
#include "support/resident.h"

#include <malloc.h>

enum { WINDOW = 65536, WINDOWS = 1000, BLOCKS = 40000, LIVE = 20000, LIVE_SIZE = 1000 };

static char *blocks[BLOCKS], *last[WINDOWS];
static unsigned lasts;

static bool is_new(const char *block, unsigned from)
{
    for (unsigned i = from; i < lasts; i++)
        if ((uintptr_t)last[i] / WINDOW == (uintptr_t)block / WINDOW) return false;
    return lasts < WINDOWS;
}

/* Fills superblocks with blocks of a size, and frees all but one of each. */
static void leave_one_of_each(size_t size, unsigned superblocks)
{
    unsigned n = (unsigned)(superblocks * WINDOW / size), from = lasts;
    for (unsigned i = 0; i < n && i < BLOCKS; i++) blocks[i] = memset(malloc(OPAQUE(size)), 1, size);
    for (unsigned i = 0; i < n && i < BLOCKS; i++)
        if (is_new(blocks[i], from))
            last[lasts++] = blocks[i];
        else
            free(blocks[i]);
}

/* Waits until memory is less than so, for a minute at most. Nothing is allocated. */
static bool goes_below(size_t bytes)
{
    for (unsigned i = 0; i < 6000 && resident() >= bytes; i++) usleep(10000);
    return resident() < bytes;
}

/* Of each class fewer blocks than fill a batch. */
static size_t leave_much(void)
{
    for (size_t size = 64, next; size <= 2500; size = next + 1) {
        void *one = malloc(OPAQUE(size));
        next = malloc_usable_size(one);
        free(one);
        leave_one_of_each(next, (unsigned)(WINDOW / 8 / next < 32 ? WINDOW / 8 / next : 32) - 1);
    }
    usleep(300000); /* some looks of purge_ms=20: what is unused has gone, and the thread sleeps */
    return resident();
}

static void free_last(void)
{
    while (lasts != 0) free(last[--lasts]);
}

static volatile int ready, go, freed;

/* At the same time as the first thread, so that it has another heap. */
static void *free_elsewhere(void *allocates)
{
    if (allocates) free(OPAQUE(malloc(20)));
    ready = 1;
    while (!go) continue;
    free_last();
    freed = 1;
    for (;;) pause();
    return NULL;
}

static void another_frees(bool allocates)
{
    pthread_t thread;
    ready = go = freed = 0;
    EXPECT(pthread_create(&thread, NULL, free_elsewhere, allocates ? &thread : NULL) == 0);
    while (!ready) continue;
    size_t kept = leave_much(), all = (size_t)lasts * WINDOW;
    go = 1;
    while (!freed) continue;
    EXPECT(goes_below(kept - all / 8 * 7));
}

int main(void)
{
    for (unsigned i = 0; i < LIVE; i++) memset(malloc(OPAQUE((size_t)LIVE_SIZE)), 1, LIVE_SIZE);
    leave_one_of_each(2000, 15);
    usleep(300000);
    size_t kept = resident(), all = (size_t)lasts * WINDOW;
    free_last();
    EXPECT(goes_below(kept - all / 4 * 3));
    another_frees(true);
    another_frees(false);
    return expect_status();
}
