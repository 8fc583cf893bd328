/* SPDX-License-Identifier: Apache-2.0 */
/* check_unlocked.c: no thread is in the kernel while it has a lock that others need. Each call to the OS (by
 * faults.h) looks how many locks its thread has, while threads do all that takes the slow paths.
 *
 * What is left: the lock of a shared reap, which is its users' own, is held while the reap asks for a chunk.
 */
#include "support/check_reap.h"

#include "base/lock.h"
#include "faults.h"
#include "heap/heap.h"

enum { THREADS = 6, SLOTS = 200, EXCHANGED = 64, STEPS = 30000 };

static _Atomic(void *) exchanged[EXCHANGED];

static size_t any_size(uint64_t *random)
{
    switch (random_below(random, 16)) {
    case 0: return 1 + random_below(random, 9 * MIB);
    case 1: return 1 + random_below(random, 300 * KIB);
    case 2:
    case 3: return 1 + random_below(random, 32 * KIB);
    default: return 1 + random_below(random, 1000);
    }
}

static void use_reap(uint64_t *random)
{
    void *reap;
    reapCreate(&reap, NULL);
    if (reap == NULL) return;
    for (unsigned i = random_below(random, 40); i != 0; i--) {
        void *object = reapMalloc(&reap, any_size(random) / 4);
        if (object != NULL && random_below(random, 3) == 0) reapFree(&reap, object);
    }
    reapDestroy(&reap);
}

static void resize(void **block, uint64_t *random)
{
    void *moved = *block != NULL ? hoard_realloc(*block, any_size(random)) : NULL;
    if (moved != NULL) *block = moved;
}

static void *work(void *seed)
{
    uint64_t random = (uintptr_t)seed;
    void *blocks[SLOTS] = {NULL};
    for (unsigned step = 0, steps = steps_of(STEPS); step < steps; step++) {
        void **block = &blocks[random_below(&random, SLOTS)];
        unsigned what = random_below(&random, 1000);
        if (what == 0) {
            hoard_trim(0);
        } else if (what < 20) {
            use_reap(&random);
        } else if (what < 60) {
            resize(block, &random);
        } else if (what < 200) { /* freed by another thread */
            *block = atomic_exchange(&exchanged[random_below(&random, EXCHANGED)], *block);
        } else {
            hoard_free(*block);
            *block = hoard_malloc(any_size(&random));
            if (*block != NULL) *(char *)*block = 1;
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) hoard_free(blocks[i]);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t random = random_seed();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(random_next(&random) | 1));
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < EXCHANGED; i++) hoard_free(atomic_exchange(&exchanged[i], NULL));
}

/* A thread that gets another id while it has its heap's lock has a fence run under it: seldom. */
TEST(no_call_to_the_os_is_made_with_a_lock, .times = 2 * PATHS)
{
    enum { FEW_FENCES = 50 };
    use_path(_i % PATHS, _i < PATHS ? "purge_ms=1" : "purge_ms=0,thp=never");
    faults_plan(faults_none);
    run_threads();
    for (unsigned call = 0; call < FAULT_CALLS; call++) {
        unsigned long n = faults_with_lock(call);
        if (n != 0) fprintf(stderr, "%s with a lock: %lu\n", faults_name(call), n);
        ck_assert_uint_le(n, call == FAULT_FENCE ? FEW_FENCES : 0);
    }
    ck_assert(heap_is_valid());
}

/* The check sees one. */
TEST(a_call_with_a_lock_is_counted)
{
    static struct lock lock;
    use_path(0, NULL);
    faults_plan(faults_none);
    lock_take(&lock);
    hoard_free(hoard_malloc(20 * MIB));
    lock_give(&lock);
    ck_assert_uint_gt(faults_with_lock(FAULT_MMAP), 0);
}

int main(void) { return run_tests((struct suite){0}); }
