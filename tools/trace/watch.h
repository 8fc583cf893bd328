/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h: how a function of this library stands in front of the program's.
 *
 *     void *malloc(size_t size)
 *     {
 *         if (!watch_enter()) return NEXT(malloc)(size);
 *         return watch_made(NEXT(malloc)(size), size, CALLER);
 *     }
 *
 * A call that comes from within another one (operator new's malloc, a pool's chunk) is passed on, and nobody
 * is told: who watches sees the outermost call. A function that runs the program's own (a pool's clean-ups)
 * is not entered: it only tells what has happened. Who watches is the recorder (recorder.h).
 *
 * Threads: any, also before libc has started, and within dlsym.
 */
#ifndef WATCH_H
#define WATCH_H

#include "next.h"
#include "recorder.h"

#define CALLER __builtin_return_address(0)
#define PUBLIC __attribute__((visibility("default")))

extern __thread unsigned watch_depth;

/* True: this is the thread's outermost call, and is watched until watch_leave. */
static inline bool watch_enter(void)
{
    if (!recorder_on || watch_depth > 0) return false;
    watch_depth = 1;
    return true;
}

static inline void watch_leave(void) { watch_depth = 0; }

/* A new object of malloc's; NULL: there is none. Leaves. */
static inline void *watch_made(void *object, size_t size, const void *caller)
{
    if (object) recorder_note(TRACE_ALLOC, object, NULL, size, recorder_now(), caller);
    watch_leave();
    return object;
}

/* Before an object's memory is given back, between watch_enter and watch_leave. */
static inline void watch_free(const void *object)
{
    if (object) recorder_note(TRACE_FREE, object, NULL, 0, recorder_now(), NULL);
}

/* What realloc has made of `old`, which was asked for at the time `before`. With size 0 it may have freed it.
 * Leaves. */
void *watch_moved(const void *old, void *object, size_t size, uint64_t before, const void *caller);

/* A new object of a pool. Leaves. */
static inline void *watch_pool_made(void *object, const void *pool, size_t size, const void *caller)
{
    if (object) recorder_note(TRACE_POOL_ALLOC, object, pool, size, recorder_now(), caller);
    watch_leave();
    return object;
}

/* Tells of a pool, outside of watch_enter: once it is outermost. */
static inline void watch_pool(enum trace_kind kind, const void *pool, const void *other, size_t number)
{
    if (!pool || !watch_enter()) return;
    recorder_note(kind, pool, other, number, recorder_now(), NULL);
    watch_leave();
}

#endif
