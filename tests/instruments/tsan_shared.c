/* SPDX-License-Identifier: Apache-2.0 */
/* Run by tsan.sh with tsan.c: threads on one shared reap, of which they free each other's objects; and forks.
 * What they pass on goes through atomic exchanges, so that no race is the program's own. */
#include "reap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void tsan_shared(void);

enum { THREADS = 3, STEPS = 6000, SLOTS = 64 };

static void *reaps[2];
static _Atomic(char *) slots[SLOTS];

static int look_at(void *object, size_t size, void *sum)
{
    *(size_t *)sum += size + (reapUsableSize(object) != size);
    return 0;
}

static void look(unsigned step)
{
    struct reap_stats stats;
    void *child, *owner;
    size_t sum = 0;
    reapStats(&reaps[0], &stats);
    reapWalk(&reaps[1], look_at, &sum);
    reapSetName(&reaps[0], step % 2 ? "one" : "the other");
    reapCreate(&child, &reaps[0]);
    if (reapOf(reapMalloc(&child, 100), &owner) != 0 || reapParent(&owner) != reaps[0]) abort();
    reapDestroy(&child);
}

static void fork_once(void)
{
    pid_t pid = fork();
    if (pid == 0) _exit(reapMalloc(&reaps[0], 100) == NULL);
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0) abort();
}

static void *play(void *number)
{
    unsigned seed = (unsigned)(size_t)number * 7919 + 1;
    for (unsigned step = 1; step <= STEPS; step++) {
        seed = seed * 1103515245 + 12345;
        size_t size = 16 + (seed >> 8) % (step % 100 ? 500 : 100000);
        char *object = reapMalloc(&reaps[0], size);
        object[size - 1] = 1;
        if (step % 5 == 0) object = reapRealloc(&reaps[0], object, size * 2);
        if (step % 7 == 0) reapFree(&reaps[1], reapMove(object, &reaps[0], &reaps[1]));
        object = atomic_exchange(&slots[seed >> 20 & (SLOTS - 1)], step % 7 ? object : NULL);
        reapFree(&reaps[0], object);
        if (step % 128 == 0) look(step);
        if (step % (STEPS / 4) == 0 && number == NULL) fork_once();
    }
    return NULL;
}

void tsan_shared(void)
{
    pthread_t threads[THREADS];
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED, .limit = 100 << 20};
    for (int i = 0; i < 2; i++)
        if (reapCreateWith(&reaps[i], NULL, &options) != 0) abort();
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, play, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) reapDestroy(&reaps[i]);
}
