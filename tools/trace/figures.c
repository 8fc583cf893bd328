/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "uses.h"

static unsigned power_of(uint64_t n)
{
    unsigned power = 0;
    while (power < FIGURES_POWERS - 1 && (uint64_t)1 << power < n) power++;
    return power;
}

static void count(struct figures_powers *powers, uint64_t n, uint64_t bytes)
{
    unsigned power = power_of(n);
    powers->objects[power]++;
    powers->bytes[power] += bytes;
}

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* --- the curve --------------------------------------------------------------------------------------- */

static void halve(struct figures *figures)
{
    struct figures_point *points = figures->points;
    for (uint32_t i = 0; i < FIGURES_POINTS / 2; i++) {
        struct figures_point a = points[2 * i], b = points[2 * i + 1];
        points[i] = (struct figures_point){greater(a.used, b.used), greater(a.objects, b.objects),
                                           greater(a.held, b.held)};
    }
    memset(points + FIGURES_POINTS / 2, 0, sizeof *points * FIGURES_POINTS / 2);
    figures->n_points = (figures->n_points + 1) / 2;
    figures->width *= 2;
}

/* What a time without events had is what was there before. */
static struct figures_point *point_of(struct figures *figures, uint64_t time)
{
    uint64_t passed = time > figures->start ? time - figures->start : 0;
    while (passed / figures->width >= FIGURES_POINTS) halve(figures);
    uint32_t i = (uint32_t)(passed / figures->width);
    for (; figures->n_points <= i; figures->n_points++) {
        struct figures_point *point = &figures->points[figures->n_points];
        point->used = figures->lives.bytes;
        point->objects = figures->lives.objects;
    }
    return &figures->points[i];
}

static void draw(struct figures *figures, const struct reader_event *event)
{
    struct figures_point *point = point_of(figures, event->time);
    point->used = greater(point->used, figures->lives.bytes);
    point->objects = greater(point->objects, figures->lives.objects);
    if (event->kind == TRACE_HELD) {
        point->held = greater(point->held, event->size);
        figures->held_most = greater(figures->held_most, event->size);
        if (figures->held_first == 0) figures->held_first = event->size;
    }
    figures->most_objects = greater(figures->most_objects, figures->lives.objects);
    if (figures->lives.bytes <= figures->most_used) return;
    figures->most_used = figures->lives.bytes;
    figures->most_used_at = event->time;
}

/* --- objects ----------------------------------------------------------------------------------------- */

static struct figures_stack *stack_of(struct figures *figures, const struct lives_object *object)
{
    uint32_t last = figures->n_stacks - 1;
    return &figures->stacks[object->stack < last ? object->stack : last];
}

static void told(enum lives_change change, uint32_t number, uint64_t was, const struct reader_event *event,
                 void *figures_)
{
    struct figures *figures = figures_;
    if (change >= LIVES_POOL_BORN) return;
    const struct lives_object *object = &figures->lives.table[number];
    struct figures_stack *stack = stack_of(figures, object);
    if (figures->drag) drag_change(figures->drag, &figures->lives, change, number);
    if (change == LIVES_BORN) {
        stack->objects++;
        stack->bytes += object->size;
        count(&figures->sizes, object->size, object->size);
    } else if (change == LIVES_RESIZED && object->size > was) {
        stack->bytes += object->size - was;
    } else if (change == LIVES_DIED) {
        count(&figures->lives_ns, event->time > object->born ? event->time - object->born : 0, object->size);
        count(&figures->lives_bytes, figures->lives.asked - object->born_bytes, object->size);
    }
    stack->alive += change == LIVES_DIED ? 0 : object->size;
    stack->alive -= change == LIVES_BORN ? 0 : was;
    stack->at_peak = greater(stack->at_peak, stack->alive);
}

static void take(struct figures *figures, const struct reader_event *event)
{
    figures->events[event->kind]++;
    if (figures->n_events++ == 0) figures->start = event->time;
    figures->end = greater(figures->end, event->time);
    lives_take(&figures->lives, event);
    draw(figures, event);
}

/* In the order of the program's stores, as the tool saw it. */
static void read_uses(struct figures *figures, struct reader *reader, struct uses *uses)
{
    struct reader_event event;
    struct uses_item item;
    uint64_t live = reader_head(reader)->live;
    while (!figures->lives.no_memory && uses_next(uses, &item)) {
        uint64_t apart = item.address - live;
        bool is_mark = item.is_mark && apart < (uint64_t)TRACE_SLOTS * TRACE_SLOT;
        uint32_t slot = (uint32_t)(apart / TRACE_SLOT);
        if (!is_mark)
            drag_use(figures->drag, &figures->lives, item.address);
        else if (slot >= TRACE_THREADS && apart % TRACE_SLOT == offsetof(struct trace_slot, used) &&
                 reader_next_of(reader, slot, &event))
            take(figures, &event);
    }
    for (uint32_t slot = TRACE_THREADS; slot < TRACE_SLOTS; slot++)
        while (reader_next_of(reader, slot, &event)) figures->n_unseen++;
}

bool figures_read(struct figures *figures, struct reader *reader, struct uses *uses)
{
    struct reader_event event;
    *figures = (struct figures){.width = 1000, .n_stacks = reader_stacks(reader) + 1};
    figures->stacks = calloc(figures->n_stacks, sizeof *figures->stacks);
    if (uses) figures->drag = drag_new(figures->n_stacks);
    bool has = figures->stacks && lives_begin(&figures->lives, told, figures) && (!uses || figures->drag);
    if (has && uses) read_uses(figures, reader, uses);
    if (has && !uses)
        while (!figures->lives.no_memory && reader_next(reader, &event)) take(figures, &event);
    if (figures->drag) drag_end(figures->drag, &figures->lives);
    if (has && !figures->lives.no_memory && !(figures->drag && drag_lacks_memory(figures->drag))) return true;
    fputs("reap-analyse: there is no memory for this number of objects\n", stderr);
    return false;
}

void figures_free(struct figures *figures)
{
    lives_end(&figures->lives);
    drag_free(figures->drag);
    free(figures->stacks);
}

double figures_fragmentation(const struct figures *figures)
{
    if (figures->held_most <= figures->held_first || figures->most_used == 0) return 0;
    return (double)(figures->held_most - figures->held_first) / (double)figures->most_used;
}
