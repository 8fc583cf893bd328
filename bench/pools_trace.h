/* SPDX-License-Identifier: Apache-2.0 */
/* pools_trace.h: the workloads, compiled for each pool (pools.h), that do what a real program did.
 *
 *     httpd     four connections of Debian's httpd with eleven requests: pools, and sizes of objects
 *     perl      a script of perl's that counts and sorts words: mallocs, frees, and what is left at its end,
 *               as one region
 *
 * A replay begins a pool, does all events (condense.py says how they are written), ends the pool, and
 * begins anew. With `out` there are as many replays at once as have 16 MB alive, in turn, each in another
 * place of the trace. Objects are written and read as by use.h, not as by the program. An operation is an
 * event.
 */
#ifndef POOLS_TRACE_H
#define POOLS_TRACE_H

#include "pools.h"
#include "traces.h"

/* clang-format off */
enum {
    TRACED_EVENTS = 6000000, TRACED_EVENTS_SHORT = 6000, OUT_TRACED_EVENTS = 2000000,
    TRACE_OUT_BYTES = 16 * 1000 * 1000, TRACE_SLICE = 20
};
/* clang-format on */

/* The objects of a trace that frees are in a table by their numbers, the others in a list of their pool's. */
struct replay {
    unsigned at, current;
    struct pool *pools;
    struct used **used, *objects;
    unsigned *n_used;
};

static void replay_begin(const struct trace *trace, struct replay *replay)
{
    pool_child(&replay->pools[0], &root, trace->frees ? 0 : (int)trace->expected);
    replay->at = replay->current = 0;
}

static inline void replay_read(struct replay *replay, unsigned pool)
{
    read_objects(replay->used[pool], (int)replay->n_used[pool]);
    replay->n_used[pool] = 0;
}

static void replay_end(const struct trace *trace, struct replay *replay)
{
    for (unsigned i = 0; trace->frees && i < trace->objects; i++) {
        if (replay->objects[i].object) use_read(replay->objects[i].object, replay->objects[i].size);
        replay->objects[i].object = NULL;
    }
    replay_read(replay, 0);
    pool_end(&replay->pools[0]);
}

#ifdef POOL_FREES
static inline void replay_of_object(struct replay *replay, const struct event *event)
{
    struct used *used = &replay->objects[event->number];
    struct pool *pool = &replay->pools[0];
    if (event->what == '-') {
        put_one(pool, used);
        used->object = NULL;
    } else {
        char *object = pool_resize(pool, used->object, used->size, event->size);
        if (object && used->size > event->size)
            use_sum += use_get(object);
        else if (object)
            use_read(object, used->size);
        use_new(used, object, event->size);
    }
}
#else
static inline void replay_of_object(struct replay *replay, const struct event *event)
{
    (void)replay, (void)event;
}
#endif

static inline struct used *replay_new(const struct trace *trace, struct replay *replay, unsigned object)
{
    if (trace->frees) return &replay->objects[object];
    return &replay->used[replay->current][replay->n_used[replay->current]++];
}

static inline void replay_event(const struct trace *trace, struct replay *replay, const struct event *event)
{
    struct pool *pool = &replay->pools[event->number], *current = &replay->pools[replay->current];
    switch (event->what) {
    case 'n':
        use_new(replay_new(trace, replay, event->number), pool_get(current, event->size), event->size);
        break;
    case '+':
        pool_child(pool, current, (int)event->size);
        replay->current = event->number;
        break;
    case '@': replay->current = event->number; break;
    case '/':
        replay_read(replay, event->number);
        pool_clear(pool);
        break;
    case '!':
        replay_read(replay, event->number);
        pool_end(pool);
        break;
    default: replay_of_object(replay, event);
    }
}

static inline void replay_some(const struct trace *trace, struct replay *replay, unsigned events)
{
    for (; events > 0; events--) {
        replay_event(trace, replay, &trace->events[replay->at]);
        if (++replay->at < trace->n) continue;
        replay_end(trace, replay);
        replay_begin(trace, replay);
    }
}

static void replay_set_up(const struct trace *trace, struct replay *replay)
{
    *replay = (struct replay){.pools = measure_table(trace->pools, sizeof *replay->pools),
                              .used = measure_table(trace->pools, sizeof *replay->used),
                              .n_used = measure_table(trace->pools, sizeof *replay->n_used)};
    if (trace->frees) replay->objects = measure_table(trace->objects, sizeof *replay->objects);
    for (unsigned i = 0; i < trace->pools; i++)
        replay->used[i] = measure_table(trace->most[i] + 1, sizeof(struct used));
}

static uint64_t replays(const char *text)
{
    struct trace trace;
    trace_read(&trace, text);
    unsigned n = out ? (unsigned)(TRACE_OUT_BYTES / trace.bytes) + 1 : 1;
    uint64_t events = 0, most = out ? OUT_TRACED_EVENTS : brief ? TRACED_EVENTS_SHORT : TRACED_EVENTS;
    struct replay *all = measure_table(n, sizeof *all);
    pool_many(true);
    for (unsigned i = 0; i < n; i++) {
        replay_set_up(&trace, &all[i]);
        replay_begin(&trace, &all[i]);
        replay_some(&trace, &all[i], i * (trace.n / n));
    }
    restart_clocks();
    for (; events < most; events += n * TRACE_SLICE)
        for (unsigned i = 0; i < n; i++) replay_some(&trace, &all[i], TRACE_SLICE);
    return events;
}

static uint64_t httpd(void) { return replays(trace_httpd); }
#ifdef POOL_FREES
static uint64_t perl(void) { return replays(trace_perl); }
#endif

#endif
