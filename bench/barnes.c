/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a cube, and who does what:
 *
 *     node    leaf, for a body          cell, for a cube of space
 *             +------+------+--------+  +------+------+--------+----------+
 *             | size | mass | center |  | size | mass | center | parts[8] |  NULL, a leaf or a cell
 *             +------+------+--------+  +------+------+--------+----------+
 *
 * Space is cut into 64 cubes. In turn a thread takes the next cube, and makes or ends its tree; or the next
 * few bodies, and sums up what pulls them. So most trees are ended by others than who made them. A round's
 * phases end together. Each body is summed up by one thread in one order: what comes out is the same with
 * any number of them.
 */
#include "barnes.h"

#include <math.h>
#include <pthread.h>

#include "workers.h"

/* clang-format off */
enum {
    BODIES = 32768, BODIES_SHORT = 1024, BODY_ROUNDS = 20, BODY_ROUNDS_SHORT = 2, BODIES_AT_ONCE = 64,
    SIDE = 4, CUBES = SIDE * SIDE * SIDE, PARTS = 8, DEEPEST = 40, PHASES = 3
};
/* clang-format on */

static const double NEAR = 1.0; /* a cube's side over its distance, of what counts as one */
static const double SOFT = 1e-5, STEP = 1e-4;

struct node {
    uint64_t size; /* take's */
    double mass, center[3];
    struct node *parts[];
};

static struct body {
    double at[3], speed[3];
    int next; /* of its cube, or -1 */
} * bodies;

static struct cube {
    int first;
    struct node *tree;
} cubes[CUBES];

static int n_bodies, body_rounds;
uint64_t barnes_sum;
static _Atomic uint64_t nodes_made;
static _Atomic int claimed[BODY_ROUNDS * PHASES];
static pthread_barrier_t phase_end;

static bool is_leaf(const struct node *node) { return node->size == sizeof *node; }

static struct node *node_new(size_t parts)
{
    struct node *node = take(sizeof *node + parts * sizeof node->parts[0]);
    for (size_t i = 0; i < parts; i++) node->parts[i] = NULL;
    node->mass = 0;
    for (int k = 0; k < 3; k++) node->center[k] = 0;
    atomic_fetch_add_explicit(&nodes_made, 1, memory_order_relaxed);
    return node;
}

/* The part of a cube with this corner that a point is in; the corner becomes that of the part. */
static int part_of(double corner[3], double half, const double at[3])
{
    int part = 0;
    for (int k = 0; k < 3; k++) {
        if (at[k] < corner[k] + half) continue;
        part |= 1 << k;
        corner[k] += half;
    }
    return part;
}

/* The tree with one leaf more. Bodies that are nearly in one place become one. */
static struct node *tree_add(struct node *tree, struct node *leaf, double corner[3], double side, int depth)
{
    if (tree == NULL) return leaf;
    if (is_leaf(tree) && depth == DEEPEST) {
        tree->mass += leaf->mass;
        give(leaf);
        return tree;
    }
    if (is_leaf(tree)) {
        struct node *cell = node_new(PARTS);
        double place[3] = {corner[0], corner[1], corner[2]};
        cell->parts[part_of(place, side / 2, tree->center)] = tree;
        tree = cell;
    }
    struct node **part = &tree->parts[part_of(corner, side / 2, leaf->center)];
    *part = tree_add(*part, leaf, corner, side / 2, depth + 1);
    return tree;
}

/* Sums up each cell's mass, and where its center is. */
static void tree_weigh(struct node *tree)
{
    if (is_leaf(tree)) return;
    for (int i = 0; i < PARTS; i++) {
        struct node *part = tree->parts[i];
        if (part == NULL) continue;
        tree_weigh(part);
        tree->mass += part->mass;
        for (int k = 0; k < 3; k++) tree->center[k] += part->mass * part->center[k];
    }
    for (int k = 0; k < 3; k++) tree->center[k] /= tree->mass;
}

static void tree_end(struct node *tree)
{
    for (int i = 0; i < PARTS && !is_leaf(tree); i++)
        if (tree->parts[i] != NULL) tree_end(tree->parts[i]);
    give(tree);
}

static void cube_build(int index)
{
    struct cube *cube = &cubes[index];
    cube->tree = NULL;
    for (int i = cube->first; i >= 0; i = bodies[i].next) {
        double corner[3] = {(double)(index % SIDE) / SIDE, (double)(index / SIDE % SIDE) / SIDE,
                            (double)(index / SIDE / SIDE) / SIDE};
        struct node *leaf = node_new(0);
        leaf->mass = 1.0 / n_bodies;
        memcpy(leaf->center, bodies[i].at, sizeof leaf->center);
        cube->tree = tree_add(cube->tree, leaf, corner, 1.0 / SIDE, 0);
    }
    if (cube->tree != NULL) tree_weigh(cube->tree);
}

static void cube_end(int index)
{
    if (cubes[index].tree != NULL) tree_end(cubes[index].tree);
}

/* Adds to a body's pull that of a tree: of the whole, where that is far away, of its parts otherwise. */
static void tree_pull(const struct node *tree, double side, const double at[3], double pull[3])
{
    double d[3], squares = SOFT;
    for (int k = 0; k < 3; k++) d[k] = tree->center[k] - at[k];
    for (int k = 0; k < 3; k++) squares += d[k] * d[k];
    if (is_leaf(tree) || side * side < NEAR * NEAR * squares) {
        double strength = tree->mass / (squares * sqrt(squares));
        for (int k = 0; k < 3; k++) pull[k] += strength * d[k];
        return;
    }
    for (int i = 0; i < PARTS; i++)
        if (tree->parts[i] != NULL) tree_pull(tree->parts[i], side / 2, at, pull);
}

/* Trees have copies of all places, so a body may move at once. It stays in space, as in a box. */
static void body_move(struct body *body)
{
    double pull[3] = {0, 0, 0};
    for (int i = 0; i < CUBES; i++)
        if (cubes[i].tree != NULL) tree_pull(cubes[i].tree, 1.0 / SIDE, body->at, pull);
    for (int k = 0; k < 3; k++) {
        body->speed[k] += STEP * pull[k];
        body->at[k] += STEP * body->speed[k];
        if (body->at[k] >= 0 && body->at[k] < 1) continue;
        body->at[k] = body->at[k] < 0 ? 0 : 1 - 1e-9;
        body->speed[k] = -body->speed[k];
    }
}

static void bodies_move(int index)
{
    for (int i = 0; i < BODIES_AT_ONCE; i++) body_move(&bodies[index * BODIES_AT_ONCE + i]);
}

static void bodies_sort(void)
{
    for (int i = 0; i < CUBES; i++) cubes[i].first = -1;
    for (int i = 0; i < n_bodies; i++) {
        const double *at = bodies[i].at;
        int x = (int)(at[0] * SIDE), y = (int)(at[1] * SIDE), z = (int)(at[2] * SIDE);
        int *first = &cubes[x + SIDE * y + SIDE * SIDE * z].first;
        bodies[i].next = *first;
        *first = i;
    }
}

/* All n of them, with the other threads. */
static void phase(int number, void (*run)(int index), int n)
{
    for (int i; (i = atomic_fetch_add(&claimed[number], 1)) < n;) run(i);
    pthread_barrier_wait(&phase_end);
}

static void barnes_thread(int index)
{
    for (int round = 0; round < body_rounds; round++) {
        if (index == 0) bodies_sort();
        pthread_barrier_wait(&phase_end);
        phase(PHASES * round, cube_build, CUBES);
        phase(PHASES * round + 1, bodies_move, n_bodies / BODIES_AT_ONCE);
        phase(PHASES * round + 2, cube_end, CUBES);
    }
}

/* Denser around one place, as bodies are. */
static void bodies_begin(void)
{
    uint32_t state = 1;
    bodies = calloc((size_t)n_bodies, sizeof *bodies);
    measure_need(bodies != NULL, "no memory");
    for (int i = 0; i < n_bodies; i++)
        for (int k = 0; k < 3; k++) {
            double u = measure_random(&state) / 4294967296.0, v = measure_random(&state) / 4294967296.0;
            bodies[i].at[k] = 0.3 + (u - 0.5) * v * 0.6 + 0.05 * k;
        }
}

uint64_t barnes_on(int threads, bool brief)
{
    n_bodies = brief ? BODIES_SHORT : BODIES;
    body_rounds = brief ? BODY_ROUNDS_SHORT : BODY_ROUNDS;
    bodies_begin();
    pthread_barrier_init(&phase_end, NULL, (unsigned)threads);
    on_threads(barnes_thread, threads);
    for (int i = 0; i < n_bodies; i++)
        for (int k = 0; k < 3; k++) barnes_sum += (uint64_t)(bodies[i].at[k] * 4294967296.0);
    return nodes_made;
}
