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
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS_MAX = 256 };

/* Bytes asked for, and what the blocks could hold, as malloc_usable_size has it. */
struct tally {
    _Atomic long now, most;
};

extern bool counting;
extern struct tally asked, usable;

void tally_add(struct tally *tally, long bytes);
void tally_count(long size, long usable_size); /* of the calling thread */

static inline void *take(size_t size)
{
    uint64_t *object = malloc(size);
    measure_need(object != NULL, "no memory");
    if (size > sizeof *object) use_write(object, size);
    *object = size;
    if (counting) tally_count((long)size, (long)malloc_usable_size(object));
    return object;
}

static inline void give(void *object_)
{
    uint64_t *object = object_;
    if (object == NULL) return;
    if (*object > sizeof *object) use_read(object, *object);
    if (counting) tally_count(-(long)*object, -(long)malloc_usable_size(object));
    free(object);
}

void on_threads(void (*run)(int index), int n);

/* One after the other, each on a thread of its own, the caller waiting. */
void on_new_thread(void (*run)(int index), int index);

#endif
