/* SPDX-License-Identifier: Apache-2.0 */
/* pools_boxed.h: the workload `boxed`, compiled for each pool (pools.h): balls in a box, with free lists by
 * size as its own allocator, after what Berger tells of boxed-sim (thesis 2002, 5.1 and 5.2; Chilimbi's
 * before), which computes much and allocates little and small.
 *
 *     link       of the list of a cell, for each ball in it: a new one when a ball comes from another cell
 *     vector     what lies between two balls, for a moment
 *     contact    of two balls that are near each other, until they part
 *
 * Numbers are whole, in 1/65536 of the box's side, so each compiler has the same. The program frees each
 * object itself, as one does with malloc: pool_new and pool_delete. What it reads of an object goes into
 * the sum.
 */
#ifndef POOLS_BOXED_H
#define POOLS_BOXED_H

#include "pools.h"

/* clang-format off */
enum {
    BALLS = 2000, BALLS_SHORT = 200, BALL_STEPS = 800, BALL_STEPS_SHORT = 4, BOX_SIDE = 1 << 16,
    GRID = 16, GRID_CELLS = GRID * GRID * GRID, CELL_SIDE = BOX_SIDE / GRID, BALL_NEAR = 1700,
    BALL_FASTEST = 600
};
/* clang-format on */

struct link_of_cell {
    struct link_of_cell *next;
    uint64_t ball;
};

struct vector {
    int64_t x[3];
};

struct contact {
    struct contact *next; /* of the first ball */
    uint32_t other, since;
    uint64_t strength;
};

static struct ball {
    int32_t at[3], speed[3];
    int cell;
    struct contact *contacts;
} * balls;

static struct {
    struct pool pool;
    int balls;
    struct link_of_cell *cells[GRID_CELLS];
    uint64_t objects;
} box;

static inline void *box_get(size_t size)
{
    void *object = pool_new(&box.pool, size);
    measure_need(object != NULL, "no memory");
    box.objects++;
    return object;
}

static inline void box_put(void *object, size_t size) { pool_delete(&box.pool, object, size); }

/* --- cells ------------------------------------------------------------------------------------ */

static int cell_of(const int32_t at[3])
{
    return at[0] / CELL_SIDE + GRID * (at[1] / CELL_SIDE) + GRID * GRID * (at[2] / CELL_SIDE);
}

static void cell_add(int cell, uint32_t ball)
{
    struct link_of_cell *link = box_get(sizeof *link);
    *link = (struct link_of_cell){box.cells[cell], ball};
    box.cells[cell] = link;
    balls[ball].cell = cell;
}

static void cell_remove(int cell, uint32_t ball)
{
    struct link_of_cell **at = &box.cells[cell], *link;
    while ((*at)->ball != ball) at = &(*at)->next;
    link = *at;
    *at = link->next;
    use_sum += link->ball;
    box_put(link, sizeof *link);
}

/* --- vectors ---------------------------------------------------------------------------------- */

static struct vector *vector_between(const int32_t a[3], const int32_t b[3])
{
    struct vector *vector = box_get(sizeof *vector);
    for (int k = 0; k < 3; k++) vector->x[k] = b[k] - a[k];
    return vector;
}

static int64_t vector_product(const struct vector *a, const struct vector *b)
{
    return a->x[0] * b->x[0] + a->x[1] * b->x[1] + a->x[2] * b->x[2];
}

static void vector_end(struct vector *vector)
{
    use_sum += (uint64_t)(vector->x[0] ^ vector->x[1] ^ vector->x[2]);
    box_put(vector, sizeof *vector);
}

/* --- contacts --------------------------------------------------------------------------------- */

static struct contact **contact_of(struct ball *ball, uint32_t other)
{
    struct contact **at = &ball->contacts;
    while (*at != NULL && (*at)->other != other) at = &(*at)->next;
    return at;
}

static void contact_end(struct contact **at)
{
    struct contact *contact = *at;
    *at = contact->next;
    use_sum += contact->since + contact->strength;
    box_put(contact, sizeof *contact);
}

/* Two balls that are near and come nearer exchange their speeds. */
static void balls_meet(uint32_t first, uint32_t second, uint32_t step)
{
    struct ball *a = &balls[first], *b = &balls[second];
    struct vector *way = vector_between(a->at, b->at);
    if (vector_product(way, way) > BALL_NEAR * BALL_NEAR) {
        vector_end(way);
        return;
    }
    struct contact **at = contact_of(a, second);
    if (*at == NULL) {
        struct contact *contact = box_get(sizeof *contact);
        *contact = (struct contact){NULL, second, step, 0};
        *at = contact;
    }
    struct vector *speed = vector_between(a->speed, b->speed);
    int64_t nearing = vector_product(way, speed);
    if (nearing < 0) {
        (*at)->strength += (uint64_t)-nearing >> 16;
        for (int k = 0; k < 3; k++) {
            int32_t other = a->speed[k];
            a->speed[k] = b->speed[k];
            b->speed[k] = other;
        }
    }
    vector_end(speed);
    vector_end(way);
}

/* Balls part. */
static void contacts_look(struct ball *ball)
{
    for (struct contact **at = &ball->contacts; *at != NULL;) {
        struct vector *way = vector_between(ball->at, balls[(*at)->other].at);
        if (vector_product(way, way) > BALL_NEAR * BALL_NEAR)
            contact_end(at);
        else
            at = &(*at)->next;
        vector_end(way);
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

static void ball_move(uint32_t index)
{
    struct ball *ball = &balls[index];
    for (int k = 0; k < 3; k++) {
        ball->at[k] += ball->speed[k];
        if (ball->at[k] >= 0 && ball->at[k] < BOX_SIDE) continue;
        ball->at[k] -= ball->speed[k];
        ball->speed[k] = -ball->speed[k];
    }
    int cell = cell_of(ball->at);
    if (cell == ball->cell) return;
    cell_remove(ball->cell, index);
    cell_add(cell, index);
}

/* Of two balls the one with the lower number looks for the other, in the cells around its own. */
static void ball_look(uint32_t index, uint32_t step)
{
    int cell[3], at[3];
    contacts_look(&balls[index]);
    for (int k = 0; k < 3; k++) cell[k] = balls[index].at[k] / CELL_SIDE;
    for (int i = 0; i < 27; i++) {
        bool is_inside = true;
        for (int k = 0, rest = i; k < 3; k++, rest /= 3) {
            at[k] = cell[k] + rest % 3 - 1;
            is_inside = is_inside && at[k] >= 0 && at[k] < GRID;
        }
        if (!is_inside) continue;
        const struct link_of_cell *link = box.cells[at[0] + GRID * at[1] + GRID * GRID * at[2]];
        for (; link != NULL; link = link->next)
            if (link->ball > index) balls_meet(index, (uint32_t)link->ball, step);
    }
}

static void balls_begin(void)
{
    uint32_t state = 1;
    balls = measure_table((size_t)box.balls, sizeof *balls);
    for (int i = 0; i < box.balls; i++) {
        for (int k = 0; k < 3; k++) {
            balls[i].at[k] = (int32_t)(measure_random(&state) % BOX_SIDE);
            balls[i].speed[k] = (int32_t)(measure_random(&state) % (2 * BALL_FASTEST)) - BALL_FASTEST;
        }
        cell_add(cell_of(balls[i].at), (uint32_t)i);
    }
}

static void balls_end(void)
{
    for (int i = 0; i < box.balls; i++) {
        while (balls[i].contacts != NULL) contact_end(&balls[i].contacts);
        cell_remove(balls[i].cell, (uint32_t)i);
        for (int k = 0; k < 3; k++) use_sum += (uint32_t)balls[i].at[k];
    }
}

static uint64_t boxed(void)
{
    uint32_t steps = (uint32_t)times(BALL_STEPS, BALL_STEPS_SHORT);
    box.balls = brief ? BALLS_SHORT : BALLS;
    pool_child(&box.pool, &root, 0);
    balls_begin();
    for (uint32_t step = 0; step < steps; step++) {
        for (int i = 0; i < box.balls; i++) ball_move((uint32_t)i);
        for (int i = 0; i < box.balls; i++) ball_look((uint32_t)i, step);
    }
    balls_end();
    pool_end(&box.pool);
    return box.objects;
}

#endif
