/* SPDX-License-Identifier: Apache-2.0 */
#include "drag.h"

#include <stdlib.h>
#include <string.h>

enum { GRAIN = 8, PAGE = 4096, GRAINS = PAGE / GRAIN, HOMES = 1 << 16 };

struct page {
    uint64_t number;
    struct page *next; /* of one home */
    uint32_t objects[GRAINS];
};

/* By the number of an object, as lives.h has it. */
struct used {
    uint64_t address, size; /* what is in the table of pages */
    uint64_t born, last;    /* bytes asked for by then */
    uint64_t born_serial, last_serial;
};

struct drag {
    struct page *homes[HOMES];
    struct used *used;
    uint32_t room;
    int64_t *held, *needed; /* by serial: what begins less what ends then */
    struct drag_object *objects;
    uint64_t n, room_n;
    struct drag_sums sums;
    uint32_t n_stacks;
    bool no_memory;
    struct drag_stack stacks[];
};

struct drag *drag_new(uint32_t n_stacks)
{
    struct drag *drag = calloc(1, sizeof *drag + n_stacks * sizeof(struct drag_stack));
    if (drag) drag->n_stacks = n_stacks;
    return drag;
}

void drag_free(struct drag *drag)
{
    if (!drag) return;
    for (int i = 0; i < HOMES; i++)
        for (struct page *page = drag->homes[i], *next; page; page = next) {
            next = page->next;
            free(page);
        }
    free(drag->used), free(drag->held), free(drag->needed), free(drag->objects), free(drag);
}

bool drag_lacks_memory(const struct drag *drag) { return drag->no_memory; }

/* --- who is where -------------------------------------------------------------------------------------- */

static struct page **home_of(struct drag *drag, uint64_t number)
{
    return &drag->homes[(number * 0x9e3779b97f4a7c15u) >> 48 & (HOMES - 1)];
}

static struct page *page_of(struct drag *drag, uint64_t number, bool makes)
{
    struct page **home = home_of(drag, number);
    for (struct page *page = *home; page; page = page->next)
        if (page->number == number) return page;
    struct page *page = makes ? calloc(1, sizeof *page) : NULL;
    drag->no_memory |= makes && !page;
    if (!page) return NULL;
    page->number = number;
    page->next = *home;
    return *home = page;
}

/* More than this of one object is not looked at. */
static const uint64_t SIZE_MOST = (uint64_t)1 << 26;

/* Puts `to` where `from` was: an object, or 0 for none; any object, where `to` is one. */
static void paint(struct drag *drag, const struct used *used, uint32_t from, uint32_t to)
{
    uint64_t size = used->size < SIZE_MOST ? used->size : SIZE_MOST;
    uint64_t end = (used->address + size + GRAIN - 1) / GRAIN;
    for (uint64_t at = used->address / GRAIN; at < end;) {
        uint64_t stop = (at / GRAINS + 1) * GRAINS < end ? (at / GRAINS + 1) * GRAINS : end;
        struct page *page = page_of(drag, at / GRAINS, to != 0);
        for (; page && at < stop; at++)
            if (to != 0 || page->objects[at % GRAINS] == from) page->objects[at % GRAINS] = to;
        at = stop;
    }
}

/* --- objects ------------------------------------------------------------------------------------------- */

static bool has_room(struct drag *drag, const struct lives *lives)
{
    if (drag->room < lives->room) {
        struct used *grown = realloc(drag->used, lives->room * sizeof *grown);
        if (!grown) return false;
        memset(grown + drag->room, 0, (lives->room - drag->room) * sizeof *grown);
        drag->used = grown;
        drag->room = lives->room;
    }
    if (lives->serial + 2 <= drag->room_n) return true;
    uint64_t room = 2 * (lives->serial + 2);
    int64_t *held = realloc(drag->held, room * sizeof *held);
    if (held) drag->held = held;
    int64_t *needed = held ? realloc(drag->needed, room * sizeof *needed) : NULL;
    if (needed) drag->needed = needed;
    struct drag_object *objects = needed ? realloc(drag->objects, room * sizeof *objects) : NULL;
    if (!objects) return false;
    drag->objects = objects;
    memset(objects + drag->room_n, 0, (room - drag->room_n) * sizeof *objects);
    memset(held + drag->room_n, 0, (room - drag->room_n) * sizeof *held);
    memset(needed + drag->room_n, 0, (room - drag->room_n) * sizeof *needed);
    drag->room_n = room;
    return true;
}

/* An object's share, when it ends or gets another size. */
static void add_up(struct drag *drag, const struct lives *lives, uint32_t number, uint64_t now)
{
    const struct used *used = &drag->used[number];
    uint32_t stack = lives->table[number].stack;
    struct drag_stack *sum = &drag->stacks[stack < drag->n_stacks - 1 ? stack : drag->n_stacks - 1];
    double held = (double)used->size * (double)(now - used->born);
    double dragged = (double)used->size * (double)(now - used->last);
    drag->sums.held += held;
    drag->sums.needed += held - dragged;
    sum->held += held;
    sum->drag += dragged;
    sum->objects++;
    sum->bytes += used->size;
    drag->held[used->born_serial] += (int64_t)used->size;
    drag->held[lives->serial + 1] -= (int64_t)used->size;
    drag->needed[used->born_serial] += (int64_t)used->size;
    drag->needed[used->last_serial + 1] -= (int64_t)used->size;
    drag->objects[lives->table[number].serial] = (struct drag_object){
        used->address, used->last_serial, stack < drag->n_stacks - 1 ? stack + 1 : drag->n_stacks};
}

void drag_change(struct drag *drag, const struct lives *lives, enum lives_change change, uint32_t number)
{
    if (drag->no_memory || !has_room(drag, lives)) {
        drag->no_memory = true;
        return;
    }
    struct used *used = &drag->used[number];
    const struct lives_object *object = &lives->table[number];
    if (change != LIVES_BORN) {
        add_up(drag, lives, number, lives->asked);
        paint(drag, used, number, 0);
    }
    if (change == LIVES_DIED) return;
    *used = (struct used){object->address, object->size,  lives->asked,
                          lives->asked,    lives->serial, lives->serial};
    paint(drag, used, 0, number);
}

void drag_use(struct drag *drag, const struct lives *lives, uint64_t address)
{
    uint64_t at = address / GRAIN;
    const struct page *page = page_of(drag, at / GRAINS, false);
    uint32_t number = page ? page->objects[at % GRAINS] : 0;
    drag->sums.uses++;
    if (number == 0) return;
    drag->sums.uses_of_objects++;
    drag->used[number].last = lives->asked;
    drag->used[number].last_serial = lives->serial;
}

void drag_end(struct drag *drag, const struct lives *lives)
{
    int64_t held = 0, needed = 0;
    if (drag->no_memory || !has_room(drag, lives)) return;
    for (uint32_t i = 1; i < lives->n && i < drag->room; i++)
        if (lives->table[i].serial != 0) add_up(drag, lives, i, lives->asked);
    for (uint64_t i = 0; i <= lives->serial; i++) {
        held += drag->held[i];
        needed += drag->needed[i];
        if ((int64_t)drag->sums.most_held < held) drag->sums.most_held = (uint64_t)held;
        if ((int64_t)drag->sums.most_needed < needed) drag->sums.most_needed = (uint64_t)needed;
    }
}

const struct drag_sums *drag_sums(const struct drag *drag) { return &drag->sums; }

const struct drag_object *drag_object(const struct drag *drag, uint64_t serial)
{
    return &drag->objects[serial];
}

const struct drag_stack *drag_stack(const struct drag *drag, uint32_t number)
{
    return &drag->stacks[number];
}
