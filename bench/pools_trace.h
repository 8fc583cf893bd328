/* SPDX-License-Identifier: Apache-2.0 */
/* pools_trace.h: the workloads of pools.h, which includes this, that do what a real program did.
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
#include "trace_httpd.h"
#include "trace_perl.h"

/* clang-format off */
enum {
    TRACED_EVENTS = 6000000, TRACED_EVENTS_SHORT = 6000, OUT_TRACED_EVENTS = 2000000,
    TRACE_OUT_BYTES = 16 * 1000 * 1000, TRACE_SLICE = 20, TRACE_MEAN = (SIZE_LEAST + SIZE_MOST) / 2
};
/* clang-format on */

struct event {
    char what; /* n for a new object, else as written */
    unsigned number;
    uint32_t size; /* of an object; of a pool the number of objects that it is told to expect */
};

struct trace {
    bool frees;
    unsigned n, objects, pools; /* the largest number is one less */
    struct event *events;
    unsigned *most;    /* objects of a pool at once, by its number */
    unsigned expected; /* by the root */
    size_t bytes;      /* alive at once */
};

/* --- reading it, before time is taken ----------------------------------------------------------- */

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

static void trace_read(struct trace *trace, const char *text)
{
    size_t most = strlen(text) / 2 + 1; /* events, and so objects and pools */
    struct living living = {.of_pool = table_of(most, sizeof(size_t)),
                            .of_object = table_of(most, sizeof(size_t)),
                            .in_pool = table_of(most, sizeof(unsigned)),
                            .freed = table_of(most, sizeof(unsigned)),
                            .began = table_of(most, sizeof(unsigned))};
    *trace = (struct trace){.frees = strchr(text, '-') != NULL,
                            .pools = 1,
                            .events = table_of(most, sizeof(struct event)),
                            .most = table_of(most, sizeof(unsigned))};
    for (const char *word = text; *word; word = strchr(word, ' ') + 1) trace_read_event(trace, &living, word);
    for (unsigned pool = 0; pool < trace->pools; pool++)
        if (living.of_pool[pool] > 0) trace_expect(trace, &living, pool);
}

/* --- a replay -------------------------------------------------------------------------------- */

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
    *replay = (struct replay){.pools = table_of(trace->pools, sizeof *replay->pools),
                              .used = table_of(trace->pools, sizeof *replay->used),
                              .n_used = table_of(trace->pools, sizeof *replay->n_used)};
    if (trace->frees) replay->objects = table_of(trace->objects, sizeof *replay->objects);
    for (unsigned i = 0; i < trace->pools; i++)
        replay->used[i] = table_of(trace->most[i] + 1, sizeof(struct used));
}

static uint64_t replays(const char *text)
{
    struct trace trace;
    trace_read(&trace, text);
    unsigned n = out ? (unsigned)(TRACE_OUT_BYTES / trace.bytes) + 1 : 1;
    uint64_t events = 0, most = out ? OUT_TRACED_EVENTS : brief ? TRACED_EVENTS_SHORT : TRACED_EVENTS;
    struct replay *all = table_of(n, sizeof *all);
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
