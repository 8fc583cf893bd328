/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h: threads that allocate, and what is known of them: how much they asked for, how much they hold.
 *
 *     take(size)            malloc, the object written, its size in the first word, counted
 *     give(object)          free, after what was written has been read, counted
 *     on_threads(run, n)    run(index) on n threads at once, until all have ended
 *
 * An object has at least 8 bytes. Counting is for the runs that measure fragmentation; in the others a
 * predicted branch is what is left of it. A thread adds up what it takes and gives and tells the sum when it
 * is over 1 KiB, and when it ends: the most asked for is exact to that times the threads.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include "measure.h"
#include "use.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { TELL = 1024, THREADS_MAX = 256 };

/* Bytes asked for, and what the blocks could hold, as malloc_usable_size has it. */
struct tally {
    _Atomic long now, most;
};

static bool counting;
static struct tally asked, usable;
static _Thread_local long asked_untold, usable_untold;

static void tally_add(struct tally *tally, long bytes)
{
    long now = atomic_fetch_add(&tally->now, bytes) + bytes, most = atomic_load(&tally->most);
    while (now > most && !atomic_compare_exchange_weak(&tally->most, &most, now)) {
    }
}

static void tell(void)
{
    tally_add(&asked, asked_untold);
    tally_add(&usable, usable_untold);
    asked_untold = usable_untold = 0;
}

static void count(long size, long usable_size)
{
    asked_untold += size;
    usable_untold += usable_size;
    if (asked_untold > TELL || asked_untold < -TELL) tell();
}

static inline void *take(size_t size)
{
    uint64_t *object = malloc(size);
    measure_need(object != NULL, "no memory");
    if (size > sizeof *object) use_write(object, size);
    *object = size;
    if (counting) count((long)size, (long)malloc_usable_size(object));
    return object;
}

static inline void give(void *object_)
{
    uint64_t *object = object_;
    if (object == NULL) return;
    if (*object > sizeof *object) use_read(object, *object);
    if (counting) count(-(long)*object, -(long)malloc_usable_size(object));
    free(object);
}

struct work {
    void (*run)(int index);
    int index;
};

static void *work_thread(void *work_)
{
    struct work *work = work_;
    work->run(work->index);
    if (counting) tell();
    return NULL;
}

static void work_start(pthread_t *thread, struct work *work)
{
    measure_need(pthread_create(thread, NULL, work_thread, work) == 0, "no thread");
}

static void on_threads(void (*run)(int index), int n)
{
    static pthread_t ids[THREADS_MAX];
    static struct work works[THREADS_MAX];
    for (int i = 0; i < n; i++) {
        works[i] = (struct work){run, i};
        work_start(&ids[i], &works[i]);
    }
    for (int i = 0; i < n; i++) pthread_join(ids[i], NULL);
}

/* One after the other, each on a thread of its own, the caller waiting. */
static inline void on_new_thread(void (*run)(int index), int index)
{
    pthread_t id;
    struct work work = {run, index};
    work_start(&id, &work);
    pthread_join(id, NULL);
}

#endif
