/* SPDX-License-Identifier: Apache-2.0 */
/* reap_gdb.c: reaps of all kinds, reported by the library, for gdb to be held to; run by reap_gdb.sh. */
#include <stdlib.h>

#include "hoard.h"
#include "reap.h"

void *connection, *object, *freed, *large;
static char buffer[20000];
volatile unsigned pairs; /* of malloc and free, for stepi */

/* Where gdb stops. */
__attribute__((noinline)) static void stop_here(void) { __asm__ volatile(""); }

static void fill(void **reap, int n)
{
    for (int i = 0; i < n; i++) {
        void *it = reapMalloc(reap, (size_t)i * 37 % 900);
        if (i % 3 == 0) reapFree(reap, it);
    }
}

int main(void)
{
    void *request, *shared, *in_buffer;
    reapCreate(&connection, NULL);
    reapSetName(&connection, "connection");
    object = reapMalloc(&connection, 100);
    freed = reapMalloc(&connection, 100);
    reapMalloc(&connection, 100);
    reapFree(&connection, freed);
    for (int i = 0; i < 3; i++) {
        reapCreate(&request, &connection);
        fill(&request, i * 300);
    }
    reapSetName(&request, "request");
    large = reapMalloc(&request, 100000);
    reapCreate(&request, &request);
    fill(&request, 10);
    reapFreeAll(&request);
    reapDestroy(&request);
    struct reap_options options = {.size = sizeof options, .name = "shared", .flags = REAP_SHARED};
    reapCreateWith(&shared, &connection, &options);
    reapMalloc(&shared, 16);
    options = (struct reap_options){.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    reapCreateWith(&in_buffer, NULL, &options);
    fill(&in_buffer, 5);
    hoard_malloc(100);
    for (unsigned i = 0; i < 3; i++) hoard_malloc(20000);
    reapSetLimit(&connection, 1 << 24);
    reapReport(NULL, stdout);
    fflush(stdout);
    stop_here();
    for (; pairs < 100000; pairs++) hoard_free(hoard_malloc(64));
    return 0;
}
