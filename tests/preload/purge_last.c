/* SPDX-License-Identifier: Apache-2.0 */
/* Run by preload-purge.sh, with purge_thread=1. One block lives in each of many superblocks, and the
 * library's thread sleeps. Then these blocks are freed, and the program does nothing: their superblocks go
 * back all the same. "own": this thread frees them, with more memory in use than caches have. */
#include "support/expect.h"
#include "support/resident.h"

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

int main(void)
{
    for (unsigned i = 0; i < LIVE; i++) memset(malloc(OPAQUE((size_t)LIVE_SIZE)), 1, LIVE_SIZE);
    leave_one_of_each(2000, 15);
    usleep(300000); /* some looks of purge_ms=20: what is unused has gone, and the thread sleeps */
    size_t kept = resident();
    for (unsigned i = 0; i < lasts; i++) free(last[i]);
    EXPECT(goes_below(kept - (size_t)lasts * WINDOW / 4 * 3));
    return expect_status();
}
