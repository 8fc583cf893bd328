/* SPDX-License-Identifier: Apache-2.0 */
/* pools_trace.h: the workloads, compiled for each pool (pools.h), that do what a real program did.
 *
 *     httpd     a child of Debian's httpd with four connections of five requests each: pools and sizes
 *     perl      a script of perl's that counts and sorts words: mallocs, frees, and what is left at its end,
 *               as one region
 *
 * README.md says how they were recorded. A replay begins a pool, does all events of the recording (traces.h),
 * ends the pool, and begins anew. With `out` there are as many replays at once as have 16 MB alive, in turn,
 * each in another place of the recording. Objects are written and read as by use.h, not as by the program. An
 * operation is an event; reading what ends with its pool is none.
 */
#ifndef POOLS_TRACE_H
#define POOLS_TRACE_H

#include "pools_frees.h"
#include "traces.h"

/* clang-format off */
enum {
    TRACED_EVENTS = 6000000, OUT_TRACED_EVENTS = 2000000,
    TRACE_OUT_BYTES = 16 * 1000 * 1000, TRACE_SLICE = 20
};
/* clang-format on */

struct replaying {
    uint32_t at;
    struct pool *pools;
    struct used *objects;
};

static void replay_begin(const struct trace *trace, struct replaying *replaying)
{
    pool_child(&replaying->pools[0], &root, trace->frees ? 0 : (int)trace->expected);
    replaying->at = 0;
}

#ifdef POOL_FREES
static inline void replay_resize(struct pool *pool, struct used *used, size_t size)
{
    char *object = pool_resize(pool, used->object, used->size, size);
    if (object && used->size > size)
        use_sum += use_get(object);
    else if (object)
        use_read(object, used->size);
    use_new(used, object, size);
}
#endif

static inline void replay_event(struct replaying *replaying, const struct event *event)
{
    struct pool *pools = replaying->pools, *pool = &pools[event->pool];
    struct used *used = &replaying->objects[event->number];
    switch (event->what) {
    case REPLAY_NEW: use_new(used, pool_get(pool, event->size), event->size); break;
    case REPLAY_READ: use_read(used->object, used->size); break;
    case REPLAY_POOL: pool_child(&pools[event->number], pool, (int)event->size); break;
    case REPLAY_POOL_CLEAR: pool_clear(&pools[event->number]); break;
    case REPLAY_POOL_END: pool_end(&pools[event->number]); break;
#ifdef POOL_FREES
    case REPLAY_FREE: put_one(pool, used); break;
    case REPLAY_RESIZE: replay_resize(pool, used, event->size); break;
#endif
    default: break;
    }
}

static inline void replay_some(const struct trace *trace, struct replaying *replaying, unsigned events)
{
    while (events > 0) {
        const struct event *event = &trace->events[replaying->at];
        replay_event(replaying, event);
        if (event->what != REPLAY_READ) events--;
        if (++replaying->at < trace->n) continue;
        pool_end(&replaying->pools[0]);
        replay_begin(trace, replaying);
    }
}

static uint64_t replays(const char *name)
{
    struct trace trace;
    if (!trace_read(&trace, name)) exit(77);
    unsigned n = out ? (unsigned)(TRACE_OUT_BYTES / trace.bytes) + 1 : 1;
    uint64_t events = 0, most = out ? OUT_TRACED_EVENTS : brief ? trace.n : TRACED_EVENTS;
    struct replaying *all = measure_table(n, sizeof *all);
    pool_many(true);
    for (unsigned i = 0; i < n; i++) {
        all[i].pools = measure_table(trace.pools, sizeof *all->pools);
        all[i].objects = measure_table(trace.objects, sizeof *all->objects);
        replay_begin(&trace, &all[i]);
        replay_some(&trace, &all[i], i * (trace.n / 2 / n));
    }
    restart_clocks();
    for (; events < most; events += n * TRACE_SLICE)
        for (unsigned i = 0; i < n; i++) replay_some(&trace, &all[i], TRACE_SLICE);
    return events;
}

static uint64_t httpd(void) { return replays("httpd"); }
#ifdef POOL_FREES
static uint64_t perl(void) { return replays("perl-short"); }
#endif

#endif
