/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_charges.c: no limit is ever exceeded, whatever is done below it, and whatever the functions of
 * limits do: a model of trees of reaps with limits, in which each charge is counted anew after each call.
 * (check_reap_limit has what one call does.) */

#include "hoard/reap_hooks.h"
#include "region/reap_chunk.h"
#include "support/check_reap.h"

enum { NODES = 20, OBJECTS = 60, STEPS = 40000, BUFFER = 64 * 1024 };

struct object {
    void *at;
    size_t bytes;
};

struct node {
    void *handle; /* NULL: none */
    struct node *parent;
    size_t limit;
    bool shared;
    struct object objects[OBJECTS + 1]; /* one more, where a function has filled it up meanwhile */
    int count;
};

static _Alignas(1024) char buffers[NODES][BUFFER];
static struct node nodes[NODES];
static uint64_t chance;

/* What a function must leave alone while a call is under way. */
static const struct node *busy[3]; /* that asks, or that gets; that gives; whose limit is met */
static const void *busy_object;
static bool within, rewinding;
static unsigned met, refused;

static unsigned below(unsigned n) { return random_below(&chance, n); }

static bool is_below(const struct node *node, const struct node *top)
{
    while (node && node != top) node = node->parent;
    return node == top;
}

/* --- what must hold -------------------------------------------------------------------------- */

static size_t live(const struct node *node)
{
    size_t bytes = 0;
    for (int i = 0; i < node->count; i++) bytes += node->objects[i].bytes;
    return bytes;
}

static size_t live_below(const struct node *top)
{
    size_t bytes = 0;
    for (int i = 0; i < NODES; i++)
        if (nodes[i].handle && is_below(&nodes[i], top)) bytes += live(&nodes[i]);
    return bytes;
}

static void check_limits(void)
{
    for (const struct node *node = nodes; node < nodes + NODES; node++)
        if (node->handle && node->limit) ck_assert_uint_le(live_below(node), node->limit);
}

static void check_all(void)
{
    struct reap_stats stats;
    for (struct node *node = nodes; node < nodes + NODES; node++)
        if (node->handle) reapStats(&node->handle, &stats); /* what was freed remotely is taken in */
    for (const struct node *node = nodes; node < nodes + NODES; node++)
        if (node->handle) ck_assert_uint_eq(stats_of(node->handle).live_bytes, live(node));
}

/* --- reaps ----------------------------------------------------------------------------------- */

static struct node *any(void)
{
    for (unsigned i = below(NODES), k = 0; k < NODES; k++)
        if (nodes[(i + k) % NODES].handle) return &nodes[(i + k) % NODES];
    return NULL;
}

static void on_limit(void **handle, size_t size, void *arg);

static void *take(size_t size, void *arg) { return (void)arg, aligned_alloc(4096, size); }
static void give(void *chunk, size_t size, void *arg) { (void)size, (void)arg, free(chunk); }

static void create(void)
{
    struct node *node = nodes, *parent = below(8) ? any() : NULL;
    while (node < nodes + NODES && node->handle) node++;
    if (node == nodes + NODES) return;
    struct reap_options options = {.size = sizeof options, .limit = below(3) ? 0 : 10000 + below(200000)};
    unsigned kind = below(8);
    options.flags = kind == 0 ? REAP_SHARED : flags_of_mode();
    if (kind == 1) options.source = (struct reap_source){take, give, NULL};
    if (kind == 2) options.buffer = buffers[node - nodes], options.buffer_size = BUFFER;
    void *handle;
    ck_assert_int_eq(reapCreateWith(&handle, parent ? &parent->handle : NULL, &options), 0);
    *node = (struct node){
        .handle = handle, .parent = parent, .limit = options.limit, .shared = options.flags != 0};
    if (below(4)) reapOnLimit(&node->handle, on_limit, node);
}

/* Returns true if something in the tree, with or without top, must stay. */
static bool has_busy(const struct node *top, bool itself)
{
    for (int i = 0; i < 3; i++) {
        if (busy[i] && is_below(busy[i], top) && (itself || busy[i] != top)) return true;
        for (int k = 0; busy[i] == top && k < top->count; k++)
            if (top->objects[k].at == busy_object) return true;
    }
    return false;
}

static void forget_below(struct node *top, bool itself)
{
    for (struct node *node = nodes; node < nodes + NODES; node++)
        if (node != top && node->handle && is_below(node, top)) node->count = -1;
    for (struct node *node = nodes; node < nodes + NODES; node++)
        if (node->count < 0) node->handle = NULL, node->count = 0;
    top->count = 0;
    if (itself) top->handle = NULL;
}

static void destroy(struct node *node)
{
    if (has_busy(node, true)) return;
    void *handle = node->handle;
    forget_below(node, true);
    reapDestroy(&handle);
}

static void clear(struct node *node)
{
    if (has_busy(node, false)) return;
    forget_below(node, false);
    reapFreeAll(&node->handle);
}

static void adopt(struct node *node, struct node *parent)
{
    if (reapAdopt(&node->handle, parent ? &parent->handle : NULL) == 0)
        node->parent = parent;
    else
        ck_assert_int_eq(errno, parent && is_below(parent, node) ? EINVAL : ENOMEM);
}

static void set_limit(struct node *node)
{
    size_t limit = below(3) ? live_below(node) + below(30000) : 0;
    if (reapSetLimit(&node->handle, limit) == 0)
        node->limit = limit;
    else
        ck_assert_int_eq(errno, ENOMEM);
}

/* --- objects --------------------------------------------------------------------------------- */

static size_t some_size(void)
{
    if (below(20) == 0) return below(90000);
    return below(3) == 0 ? below(6000) : below(300);
}

static void note(struct node *node, void *at)
{
    if (!at) {
        ck_assert_int_eq(errno, ENOMEM);
        refused++;
        return;
    }
    node->objects[node->count++] = (struct object){at, reapUsableSize(at)};
}

static void set_busy(const struct node *one, const struct node *two, const void *object)
{
    if (within) return;
    busy[0] = one;
    busy[1] = two;
    busy_object = object;
}

static void allocate(struct node *node)
{
    void *at;
    if (node->count >= OBJECTS) return;
    set_busy(node, NULL, NULL);
    if (below(5))
        at = reapMalloc(&node->handle, some_size());
    else
        at = reapAlignedAlloc(&node->handle, (size_t)64 << below(4), some_size());
    set_busy(NULL, NULL, NULL);
    note(node, at);
}

static struct object *any_object(struct node *node)
{
    struct object *object = node->count ? &node->objects[below((unsigned)node->count)] : NULL;
    return object && object->at != busy_object ? object : NULL;
}

static void drop(struct node *node, const void *at)
{
    for (int i = 0; i < node->count; i++)
        if (node->objects[i].at == at) node->objects[i] = node->objects[--node->count];
}

/* As another thread's free() does. */
static void free_remotely(void *at) { reap_hooks->free_object(chunk_of(at, NULL), at, "free"); }

static void release(struct node *node)
{
    struct object *object = any_object(node);
    if (!object) return;
    void *at = object->at;
    drop(node, at);
    if (below(3))
        reapFree(&node->handle, at);
    else
        free_remotely(at);
}

static void resize(struct node *node)
{
    struct object *object = any_object(node);
    size_t size = some_size();
    if (!object) return;
    void *at = object->at, *resized;
    set_busy(node, NULL, at);
    if (below(4))
        resized = reapRealloc(&node->handle, at, size);
    else
        resized = reap_hooks->realloc_object(chunk_of(at, NULL), at, size, "realloc");
    set_busy(NULL, NULL, NULL);
    if (resized) drop(node, at);
    note(node, resized);
}

static void move(struct node *from, struct node *to)
{
    struct object *object = any_object(from);
    if (!object || to->count >= OBJECTS) return;
    void *at = object->at;
    set_busy(to, from, at);
    void *moved = reapMove(at, &from->handle, &to->handle);
    set_busy(NULL, NULL, NULL);
    if (moved) drop(from, at);
    note(to, moved);
}

/* Back to where some objects are not yet. */
static void rewind_some(struct node *node)
{
    reap_mark mark;
    if (node->count >= OBJECTS || has_busy(node, false)) return;
    rewinding = true; /* what functions did would be undone, too */
    reapMark(&node->handle, &mark);
    for (unsigned n = below(10); n > 0; n--) reapMalloc(&node->handle, some_size());
    reapRewind(&node->handle, &mark);
    reapUnmark(&node->handle, &mark);
    rewinding = false;
}

/* --- what is done ---------------------------------------------------------------------------- */

static void act(unsigned what)
{
    struct node *node = any(), *other = any();
    if (!node) what = 9;
    switch (what) {
    case 0: set_limit(node); break;
    case 1: adopt(node, below(4) ? other : NULL); break;
    case 2:
        if (below(6) == 0) destroy(node);
        break;
    case 3:
        if (below(6) == 0) clear(node);
        break;
    case 4: move(node, other); break;
    case 5:
    case 6: release(node); break;
    case 7: resize(node); break;
    case 8:
        if (!within) rewind_some(node);
        break;
    case 9:
        if (!within) create();
        break;
    default: allocate(node);
    }
}

/* Anything at all, but for what the call that it comes from is about. */
static void on_limit(void **handle, size_t size, void *arg)
{
    struct node *node = arg;
    (void)size;
    if (rewinding) return;
    ck_assert_ptr_eq(*handle, node->handle);
    within = true;
    busy[2] = node;
    met++;
    for (unsigned n = below(4); n > 0; n--) act(below(14));
    if (below(2)) set_limit(node);
    within = false;
    busy[2] = NULL;
}

static void step(void)
{
    act(below(20));
    check_limits();
}

TEST(no_limit_is_ever_exceeded)
{
    chance = random_seed();
    for (unsigned i = 0; i < steps_of(STEPS); i++) {
        step();
        if (i % 16 == 0) check_all();
    }
    check_all();
    printf("%u times a function was called, %u refusals\n", met, refused);
    ck_assert_uint_gt(met, steps_of(STEPS) / 200);
    for (int i = 0; i < NODES; i++)
        if (nodes[i].handle) destroy(&nodes[i]);
}

/* --- what was charged to nobody -------------------------------------------------------------- */

enum { LIMIT = 1 << 20, INNER = 64 * 1024 };

static void lift(void **handle, size_t size, void *arg)
{
    (void)size, (void)arg;
    ck_assert_int_eq(reapSetLimit(handle, 0), 0);
}

/* A limit that is met by an object that moves, and lifted by its function: rooms of others below it come
 * back, and the limit above is charged all the same. */
TEST(a_limit_is_lifted_while_an_object_moves)
{
    void *outer, *inner, *others[8], *source;
    size_t moved = 0;
    reapCreate(&outer, NULL);
    reapCreate(&source, NULL);
    ck_assert_int_eq(reapSetLimit(&outer, LIMIT), 0);
    for (int round = 0; round < 400; round++) {
        reapCreate(&inner, &outer);
        if (reapSetLimit(&inner, INNER) != 0) break;
        for (int i = 0; i < 8; i++) {
            reapCreate(&others[i], &inner);
            reapMalloc(&others[i], 16); /* and it has room */
        }
        reapOnLimit(&inner, lift, NULL);
        size_t size = INNER - 8 * 16;
        if (reapMove(reapMalloc(&source, size), &source, &inner)) moved += size;
        ck_assert_uint_le(moved, LIMIT);
        assert_valid(inner);
    }
    assert_valid(outer);
    ck_assert_uint_gt(moved, LIMIT / 2);
    reapDestroy(&outer);
    reapDestroy(&source);
}

int main(void) { return run_tests((struct suite){.modes = ALL_MODES, .seconds = 120}); }
