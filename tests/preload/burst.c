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

#include <sys/resource.h>
#include <time.h>

enum { BYTES = 96 << 20, LEFT = 9 << 20, PHASES = 16 };

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

/* Returns the page faults that it took. The first word of each object leads to the one before. */
static long use_and_free(void)
{
    struct rusage before, after;
    char *last = NULL;
    getrusage(RUSAGE_SELF, &before);
    begin();
    for (size_t i = 0; i < BYTES / size; i++) {
        char *object = memset(get(), 1, size);
        memcpy(object, &last, sizeof last);
        last = object;
    }
    for (char *object; (object = last) != NULL; give(object)) memcpy(&last, object, sizeof last);
    end();
    round_number++;
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

/* Other programs may keep the purge from the processors for a while: then it has three seconds more. */
static void burst(size_t before, int keeps)
{
    use_and_free();
    sleep(1);
    size_t now = resident(), left = LEFT;
    for (int i = 0; !keeps && now > before + left && i < 30; i++, now = resident()) usleep(100000);
    if ((now <= before + left) == !keeps) return;
    EXPECT((now <= before + left) == !keeps);
    fprintf(stderr, "%zu bytes: %zu KiB before, %zu after\n", size, before >> 10, now >> 10);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The first phases find out what is wanted again. Then it stays, and most phases take their memory as it is.
 * On a busy machine a phase may last for a second. Such phases do not count. */
static void phases(void)
{
    int anew = 0, quick = 0;
    double begun = seconds(), last = begun;
    for (int i = 0; i < PHASES && last - begun < 5; i++) {
        long faults = use_and_free();
        double now = seconds();
        if (now - last < 0.3) anew += faults > BYTES / 4096 / 4;
        quick += now - last < 0.3;
        last = now;
    }
    if (anew > quick / 2 + 2) fprintf(stderr, "%zu bytes: %d of %d phases anew\n", size, anew, quick);
    EXPECT(anew <= quick / 2 + 2);
    sleep((unsigned)(4 * (last - begun)) + 5);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 99;
    size = (size_t)atol(argv[1]);
    int keeps = argc > 2;
    size_t before = resident();
    burst(before, keeps);
    if (!keeps) burst(before, keeps);
    if (!keeps) phases();
    if (!keeps) burst(before, keeps);
    return expect_status();
}
