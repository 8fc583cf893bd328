/* SPDX-License-Identifier: Apache-2.0 */
#include "traces.h"

#include "measure.h"

enum { TRACE_MEAN = 72 }; /* the mean of the sizes of pools.h */

/* What is alive while a trace is read. A pool's bytes are those since it began, or was cleared. */
struct living {
    size_t bytes, *of_pool, *of_object;
    unsigned *in_pool, *freed, *began, n_freed, current;
};

static void trace_expect(struct trace *trace, const struct living *living, unsigned pool)
{
    unsigned objects = (unsigned)(living->of_pool[pool] / TRACE_MEAN) + 1;
    unsigned *expected = pool == 0 ? &trace->expected : &trace->events[living->began[pool]].size;
    if (*expected < objects) *expected = objects;
    if (trace->most[pool] < living->in_pool[pool]) trace->most[pool] = living->in_pool[pool];
}

static void trace_empty(struct trace *trace, struct living *living, unsigned pool)
{
    trace_expect(trace, living, pool);
    if (!trace->frees) living->bytes -= living->of_pool[pool];
    living->of_pool[pool] = living->in_pool[pool] = 0;
}

static void trace_resize(struct trace *trace, struct living *living, unsigned object, size_t size)
{
    size_t had = living->of_object[object];
    size = (size + 15) / 16 * 16;
    living->of_object[object] = size;
    living->of_pool[living->current] += size;
    living->bytes += trace->frees ? size - had : size;
    if (trace->bytes < living->bytes) trace->bytes = living->bytes;
}

static void trace_read_event(struct trace *trace, struct living *living, const char *word)
{
    struct event *event = &trace->events[trace->n++];
    char *rest;
    event->what = *word >= '0' && *word <= '9' ? 'n' : *word;
    event->number = (unsigned)strtoul(word + (event->what != 'n'), &rest, 10);
    switch (event->what) {
    case 'n':
        event->size = event->number;
        event->number = living->n_freed > 0 ? living->freed[--living->n_freed] : trace->objects++;
        living->in_pool[living->current]++;
        trace_resize(trace, living, event->number, event->size);
        break;
    case '=':
        event->size = (uint32_t)strtoul(rest + 1, NULL, 10);
        trace_resize(trace, living, event->number, event->size);
        break;
    case '-':
        trace->frees = true;
        trace_resize(trace, living, event->number, 0);
        living->freed[living->n_freed++] = event->number;
        break;
    case '+':
        if (trace->pools <= event->number) trace->pools = event->number + 1;
        living->began[event->number] = trace->n - 1;
        living->current = event->number;
        break;
    case '@': living->current = event->number; break;
    case '/':
    case '!': trace_empty(trace, living, event->number); break;
    default: measure_need(0, "an event of a trace that nobody knows");
    }
}

void trace_read(struct trace *trace, const char *text)
{
    size_t most = strlen(text) / 2 + 1; /* events, and so objects and pools */
    struct living living = {.of_pool = measure_table(most, sizeof(size_t)),
                            .of_object = measure_table(most, sizeof(size_t)),
                            .in_pool = measure_table(most, sizeof(unsigned)),
                            .freed = measure_table(most, sizeof(unsigned)),
                            .began = measure_table(most, sizeof(unsigned))};
    *trace = (struct trace){.frees = strchr(text, '-') != NULL,
                            .pools = 1,
                            .events = measure_table(most, sizeof(struct event)),
                            .most = measure_table(most, sizeof(unsigned))};
    for (const char *word = text; *word; word = strchr(word, ' ') + 1) trace_read_event(trace, &living, word);
    for (unsigned pool = 0; pool < trace->pools; pool++)
        if (living.of_pool[pool] > 0) trace_expect(trace, &living, pool);
}
