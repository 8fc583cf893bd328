/* SPDX-License-Identifier: Apache-2.0 */
/* Run by preload-burst.sh: burst SIZE [keeps]. Uses 96 MiB in objects of SIZE bytes, and frees all in one go.
 * A second later, in which this one thread makes no call, the memory must be gone, but for a little; with
 * `keeps` it must still be there. Then come phases, of which some may bring page faults for all of it, and
 * most may not; and after a few times as long as these took a burst gives the memory back again. With REAPS
 * (burst_reaps) reaps use it, in a program that has another malloc: objects are freed one by one, and in the
 * next round by the end of the reap.
 */
#include "support/expect.h"
#include "support/resident.h"

#ifdef REAPS
#include "reap.h"
#endif

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 96 << 20, LEFT = 9 << 20, PHASES = 12 };

static char **objects;
static size_t size;
static int round_number;

#ifdef REAPS
static void *reap;
static void begin(void) { reapCreate(&reap, NULL); }
static char *get(void) { return reapMalloc(&reap, size); }
static void give(char *object)
{
    if (round_number % 2 == 0) reapFree(&reap, object);
}
static void end(void) { reapDestroy(&reap); }
#else
static void begin(void) {}
static char *get(void) { return malloc(OPAQUE(size)); }
static void give(char *object) { free(object); }
static void end(void) {}
#endif

/* Returns the page faults that it took. */
static long use_and_free(void)
{
    struct rusage before, after;
    size_t n = BYTES / size;
    getrusage(RUSAGE_SELF, &before);
    begin();
    for (size_t i = 0; i < n; i++) objects[i] = memset(get(), 1, size);
    for (size_t i = 0; i < n; i++) give(objects[i]);
    end();
    round_number++;
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

static void burst(size_t before, int keeps)
{
    use_and_free();
    sleep(1);
    size_t now = resident(), left = LEFT + BYTES / size * sizeof *objects;
    if ((now <= before + left) == !keeps) return;
    EXPECT((now <= before + left) == !keeps);
    fprintf(stderr, "%zu bytes: %zu KiB before, %zu after\n", size, before >> 10, now >> 10);
}

/* Purges in vain come after 0, 1, 3, 7 ... seconds: most phases take their memory as it is. */
static void phases(void)
{
    int anew = 0;
    time_t begun = time(NULL);
    for (int i = 0; i < PHASES; i++) anew += use_and_free() > BYTES / 4096 / 4;
    unsigned seconds = (unsigned)(time(NULL) - begun);
    if (anew > PHASES / 2) fprintf(stderr, "%zu bytes: %d phases anew in %u seconds\n", size, anew, seconds);
    EXPECT(anew <= PHASES / 2);
    sleep(4 * seconds + 5);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 99;
    size = (size_t)atol(argv[1]);
    objects = calloc(BYTES / size, sizeof *objects);
    memset(objects, 1, BYTES / size * sizeof *objects);
    int keeps = argc > 2;
    size_t before = resident();
    burst(before, keeps);
    if (!keeps) burst(before, keeps);
    if (!keeps) phases();
    if (!keeps) burst(before, keeps);
    return expect_status();
}
