/* SPDX-License-Identifier: Apache-2.0 */
#include "traces.h"

#include "measure.h"

enum { TRACE_MEAN = 72 /* the mean of the sizes of pools.h */, TRACE_LEAST = 8, TRACE_ROUND = 16 };

/* What is alive while a trace is read: by object its bytes, by pool its bytes since it began or was cleared,
 * and the event that began it, plus 1. */
struct living {
    size_t bytes, *of_object, *of_pool;
    uint32_t *began;
};

static void expect(struct trace *trace, const struct living *living, uint32_t pool)
{
    uint32_t objects = (uint32_t)(living->of_pool[pool] / TRACE_MEAN) + 1;
    uint32_t *expected = pool == 0 ? &trace->expected : &trace->events[living->began[pool] - 1].size;
    if (*expected < objects) *expected = objects;
    living->of_pool[pool] = 0;
}

static void resize(struct trace *trace, struct living *living, const struct event *event, size_t size)
{
    size_t *had = &living->of_object[event->number];
    size = (size + TRACE_ROUND - 1) / TRACE_ROUND * TRACE_ROUND;
    living->bytes += size - *had;
    living->of_pool[event->pool] += size;
    *had = size;
    if (trace->bytes < living->bytes) trace->bytes = living->bytes;
}

static void add(struct trace *trace, struct living *living, struct event event)
{
    trace->events[trace->n++] = event;
    switch (event.what) {
    case REPLAY_NEW:
    case REPLAY_RESIZE: resize(trace, living, &event, event.size); break;
    case REPLAY_FREE:
    case REPLAY_READ: resize(trace, living, &event, 0); break;
    case REPLAY_POOL: living->began[event.number] = trace->n; break;
    case REPLAY_POOL_END:
        expect(trace, living, event.number);
        living->began[event.number] = 0;
        break;
    default: expect(trace, living, event.number);
    }
}

/* Children begin after their parents, and so end before them. */
static void end_all(struct trace *trace, struct living *living)
{
    for (uint32_t i = 0; i < trace->objects; i++)
        if (living->of_object[i] > 0) add(trace, living, (struct event){.what = REPLAY_READ, .number = i});
    for (;;) {
        uint32_t last = 0;
        for (uint32_t i = 1; i < trace->pools; i++)
            if (living->began[i] > living->began[last]) last = i;
        if (last == 0) break;
        add(trace, living, (struct event){.what = REPLAY_POOL_END, .number = last});
    }
    expect(trace, living, 0);
}

bool trace_read(struct trace *trace, const char *name)
{
#ifdef RECORDINGS
    char path[4096];
    snprintf(path, sizeof path, RECORDINGS "/%s.trace", name);
    const struct replay *replay = replay_load(path, true, NULL);
    measure_need(replay != NULL, "no such recording");
    *trace = (struct trace){
        .frees = replay->n_pools == 0,
        .objects = replay->n_objects + 1,
        .pools = replay->n_pools + 1,
        .events = measure_table(replay->n + replay->n_objects + replay->n_pools + 2, sizeof(struct event))};
    struct living living = {.of_object = measure_table(trace->objects, sizeof(size_t)),
                            .of_pool = measure_table(trace->pools, sizeof(size_t)),
                            .began = measure_table(trace->pools, sizeof(uint32_t))};
    for (uint64_t i = 0; i < replay->n; i++) {
        const struct replay_op *op = &replay->ops[i];
        bool is_object = op->kind < REPLAY_POOL;
        struct event event = {(enum replay_kind)op->kind, op->number, op->pool, 0};
        if (is_object) event.size = op->size > TRACE_LEAST ? (uint32_t)op->size : TRACE_LEAST;
        if (!trace->frees && event.what == REPLAY_FREE) event.what = REPLAY_READ;
        if (trace->frees || !is_object || (op->pool > 0 && event.what != REPLAY_RESIZE))
            add(trace, &living, event);
    }
    end_all(trace, &living);
    return true;
#else
    (void)trace, (void)name, (void)add, (void)end_all;
    return false;
#endif
}
