/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.c: no call of ours is a cancellation point. A thread that is to be cancelled goes on through malloc,
 * free and the calls of reaps, up to a cancellation point of its own: else it would end within malloc, with
 * the locks that it holds, and the next thread would wait for ever. Linked to libreap-malloc.
 *
 *     cancel            runs itself below, with each set of options
 *     cancel run        one process's worth
 *     cancel misuse     a line and an abort, also by a thread that is to be cancelled
 */
#include <malloc.h>
#include <sched.h>
#include <signal.h>

#include "hoard.h"
#include "reap.h"
#include "support/expect.h"

enum { BLOCKS = 20000, SECONDS = 60 };

static FILE *null;
static int done; /* by the thread, up to its own cancellation point */

/* 40 MB in small blocks, and larger ones: new superblocks, arenas, mappings, and back. */
static void storm(void)
{
    static void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = OPAQUE(malloc(16 + i * 7 % 4000));
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    for (size_t size = 100; size < 64 << 20; size *= 3) {
        char *block = OPAQUE(malloc(size));
        block = OPAQUE(realloc(block, size * 2));
        free(OPAQUE(calloc(2, size)));
        free(OPAQUE(aligned_alloc(4096, size)));
        free(block);
    }
    malloc_trim(0);
}

static void reaps(void)
{
    void *reap, *shared, *child;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED, .limit = 1 << 20};
    reapCreate(&reap, NULL);
    EXPECT(reapCreateWith(&shared, &reap, &options) == 0);
    reapCreate(&child, &reap);
    reapEnter(&reap);
    for (size_t i = 0; i < 5000; i++) free(OPAQUE(malloc(16 + i % 3000)));
    for (size_t size = 100; size < 64 << 20; size *= 3)
        free(OPAQUE(strdup("within"))), reapMalloc(&reap, size);
    reapLeave();
    while (reapMalloc(&shared, 1000)) continue;
    reapReport(&shared, null);
    reapDestroy(&reap);
}

static void *between;
static _Atomic int other; /* 1: the other thread runs; 2: it is to end; 3: it does */

static void stand_still(int signal)
{
    (void)signal;
    usleep(3000);
}

static void *come_and_go(void *unused)
{
    void *objects[8];
    for (other = 1; other == 1;) {
        for (int i = 0; i < 8; i++) objects[i] = reapMalloc(&between, 40);
        for (int i = 0; i < 8; i++) reapFree(&between, objects[i]);
    }
    other = 3;
    return unused;
}

static int nothing(void *object, size_t size, void *arg) { return (void)object, (void)size, (void)arg, 0; }

static void take(void)
{
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    pthread_t thread;
    signal(SIGUSR1, stand_still);
    EXPECT(reapCreateWith(&between, NULL, &options) == 0);
    EXPECT(pthread_create(&thread, NULL, come_and_go, NULL) == 0);
    pthread_detach(thread); /* a join would end this thread */
    while (other != 1) sched_yield();
    for (int i = 0; i < 20; i++) {
        pthread_kill(thread, SIGUSR1);
        for (int k = 0; k < 1000; k++) reapFree(&between, reapMalloc(&between, 100));
        EXPECT(reapWalk(&between, nothing, NULL) == 0);
    }
    for (other = 2; other != 3;) sched_yield();
    reapDestroy(&between);
}

/* Each in a thread of its own: first uses are where files are read. */
static void (*const works[])(void) = {reaps, storm, take, storm, reaps};
static pthread_barrier_t barrier;

static void *cancelled(void *arg)
{
    int state;
    void (*const *work)(void) = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_barrier_wait(&barrier); /* it lives */
    pthread_barrier_wait(&barrier); /* it is to be cancelled */
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    (*work)();
    done++;
    for (;;) pthread_testcancel();
    return NULL;
}

static void *in_cancelled(void (*const *work)(void))
{
    pthread_t thread;
    void *result = NULL;
    pthread_barrier_init(&barrier, NULL, 2);
    EXPECT(pthread_create(&thread, NULL, cancelled, (void *)(uintptr_t)work) == 0);
    pthread_barrier_wait(&barrier);
    pthread_cancel(thread);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, &result);
    return result;
}

static int run(void)
{
    alarm(SECONDS); /* what is locked for ever ends so */
    null = fopen("/dev/null", "w");
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        EXPECT(in_cancelled(&works[i]) == PTHREAD_CANCELED);
        EXPECT(done == (int)i + 1);
        storm();
    }
    fclose(null);
    return expect_status();
}

static void free_twice(void)
{
    void *block = OPAQUE(malloc(100)), *same = OPAQUE(block);
    free(block);
    free(same);
}

static int misuse(void)
{
    static void (*const work)(void) = free_twice;
    in_cancelled(&work);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const options[] = {"",
                                          "heaps=cpu",
                                          "path=locked,stats=1",
                                          "heaps=core,harden=1,stats=1",
                                          "heaps=thread,lock=block",
                                          "memory_limit=refuse,purge_ms=0",
                                          "purge_thread=1,bypass=1"};
    if (argc > 1) return strcmp(argv[1], "run") == 0 ? run() : misuse();
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int status = run_again("run", options[i]);
        if (status != 0) printf("REAP_OPTIONS=%s: status %#x\n", options[i], (unsigned)status);
        EXPECT(status == 0);
    }
    int status = run_again("misuse", "");
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return expect_status();
}
