/* check_reap_model.c: reaps against a shadow model. Random calls on a few nested reaps; a table beside
 * them says what must be where. Each object is filled with bytes of its own, checked when it is
 * freed, resized or walked. REAP_TEST_SEED repeats a run, REAP_TEST_STEPS makes it longer. */
#include "check_reap.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REAPS = 6, OBJECTS = 600, STEPS = 20000, EVERY = 64, MARKS = 5 };

struct object {
    unsigned char *at; /* NULL: this entry is free */
    size_t size;
    size_t usable;
    unsigned reap;
    unsigned char fill;
    unsigned depth; /* marks that were open when it was made, and still are */
};

struct model {
    void *reaps[REAPS]; /* NULL: not alive */
    unsigned parent[REAPS];
    size_t limits[REAPS]; /* 0: none */
    reap_mark marks[REAPS][MARKS];
    unsigned depth[REAPS]; /* how many of them are open */
    unsigned born[REAPS];  /* the parent's, when it was made, as far as they are still open */
    struct object objects[OBJECTS];
    uint64_t random;
};

static uint64_t next_random(struct model *model)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return model->random >> 11;
}

static unsigned below(struct model *model, unsigned n) { return (unsigned)(next_random(model) % n); }

/* Mostly small, now and then up to a large object. */
static size_t random_size(struct model *model)
{
    switch (below(model, 40)) {
    case 0:
        return below(model, 200000);
    case 1:
        return below(model, 33000);
    case 2:
        return 0;
    case 3:
    case 4:
    case 5:
        return below(model, 3000);
    default:
        return below(model, 300);
    }
}

static size_t rounded(size_t size) { return size == 0 ? 16 : (size + 15) / 16 * 16; }

static bool all(const unsigned char *bytes, size_t n, unsigned char value)
{
    return n == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, n - 1) == 0);
}

static void check_filled(const struct object *object)
{
    ck_assert_msg(all(object->at, object->size, object->fill), "an object has changed");
}

static void enter(struct model *model, struct object *object, unsigned reap, void *at, size_t size)
{
    void *owner;
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq((uintptr_t)at % 16, 0);
    ck_assert_uint_eq(reapUsableSize(at), rounded(size));
    ck_assert_int_eq(reapOf((char *)at + below(model, (unsigned)rounded(size)), &owner), 0);
    ck_assert_ptr_eq(owner, model->reaps[reap]);
    unsigned depth = object->at == at ? object->depth : model->depth[reap];
    *object = (struct object){at, size, rounded(size), reap, (unsigned char)next_random(model), depth};
    memset(at, object->fill, size);
}

static struct object *random_object(struct model *model, bool alive)
{
    for (unsigned i = 0; i < 20; i++) {
        struct object *object = &model->objects[below(model, OBJECTS)];
        if ((object->at != NULL) == alive) return object;
    }
    return NULL;
}

static int random_reap(struct model *model)
{
    unsigned reap = below(model, REAPS);
    return model->reaps[reap] ? (int)reap : -1;
}

/* --- limits ---------------------------------------------------------------------------------- */

static bool is_below(const struct model *model, unsigned reap, unsigned top)
{
    for (; reap != REAPS; reap = model->parent[reap])
        if (reap == top) return true;
    return false;
}

/* The live bytes of a reap and all below it. */
static size_t live_below(const struct model *model, unsigned top)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct object *object = &model->objects[i];
        if (object->at && is_below(model, object->reap, top)) bytes += object->usable;
    }
    return bytes;
}

static unsigned reaps_below(const struct model *model, unsigned top)
{
    unsigned count = 0;
    for (unsigned i = 0; i < REAPS; i++) count += model->reaps[i] && is_below(model, i, top);
    return count;
}

/* Has a call that would make `more` bytes live in a reap, which came from another one (REAPS: from none),
 * done what the limits say? Where several reaps share one, the sixteenth that may be anybody's room says
 * neither. */
static bool was_refused(const struct model *model, unsigned from, unsigned reap, size_t more, bool done)
{
    bool must = false, may = false;
    for (unsigned i = reap; i != REAPS; i = model->parent[i]) {
        if (is_below(model, from, i)) continue;
        size_t limit = model->limits[i], live = limit ? live_below(model, i) + more : 0;
        size_t early = reaps_below(model, i) > 1 ? limit / 16 : 0;
        if (limit && live > limit / 16 * 16) must = true;
        if (limit && live > limit / 16 * 16 - early / 16 * 16) may = true;
    }
    if (done) {
        ck_assert_msg(!must, "a limit is exceeded");
        return false;
    }
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_msg(may, "a refusal without a reason");
    return true;
}

static void do_limit(struct model *model)
{
    int reap = random_reap(model);
    if (reap < 0) return;
    size_t live = live_below(model, (unsigned)reap);
    size_t limit = below(model, 3) == 0 ? 0 : live / 2 + below(model, 3) * (live / 2) + below(model, 100000);
    int result = reapSetLimit(&model->reaps[reap], limit);
    if (limit == 0 || live <= limit / 16 * 16) {
        ck_assert_int_eq(result, 0);
        model->limits[reap] = limit;
    } else {
        ck_assert_int_eq(result, -1);
        ck_assert_int_eq(errno, ENOMEM);
    }
}

/* --- the calls ------------------------------------------------------------------------------- */

static void do_alloc(struct model *model)
{
    struct object *object = random_object(model, false);
    int reap = random_reap(model);
    if (!object || reap < 0) return;
    void **handle = &model->reaps[reap];
    size_t size = random_size(model), alignment = (size_t)1 << below(model, 15);
    unsigned char *at;
    switch (below(model, 8)) {
    case 0:
        at = reapCalloc(handle, 1, size);
        ck_assert_msg(!at || all(at, size, 0), "not zero");
        break;
    case 1:
        at = reapAlignedAlloc(handle, alignment, size);
        ck_assert_uint_eq((uintptr_t)at % alignment, 0);
        break;
    default:
        at = reapMalloc(handle, size);
    }
    if (was_refused(model, REAPS, (unsigned)reap, rounded(size), at)) return;
    enter(model, object, (unsigned)reap, at, size);
}

static void do_free(struct model *model)
{
    struct object *object = random_object(model, true);
    if (!object) return;
    check_filled(object);
    reapFree(&model->reaps[object->reap], object->at);
    object->at = NULL;
}

static void do_realloc(struct model *model)
{
    struct object *object = random_object(model, true);
    if (!object) return;
    size_t size = random_size(model), common = size < object->size ? size : object->size;
    check_filled(object);
    unsigned char *at = reapRealloc(&model->reaps[object->reap], object->at, size);
    if (was_refused(model, REAPS, object->reap, rounded(size) - object->usable, at)) return;
    ck_assert_msg(all(at, common, object->fill), "not copied");
    enter(model, object, object->reap, at, size);
}

/* Takes out what goes with a reap; the reap itself only when it is destroyed. */
static void forget(struct model *model, unsigned top, bool destroyed)
{
    bool gone[REAPS];
    for (unsigned i = 0; i < REAPS; i++) gone[i] = model->reaps[i] && is_below(model, i, top);
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *object = &model->objects[i];
        if (object->at && gone[object->reap]) object->at = NULL;
    }
    for (unsigned i = 0; i < REAPS; i++)
        if (gone[i] && (i != top || destroyed)) model->reaps[i] = NULL;
    model->depth[top] = 0;
}

/* A source of chunks, for some of the reaps. */
static void *take(size_t size, void *arg)
{
    (void)arg;
    return aligned_alloc(4096, size);
}

static void give(void *chunk, size_t size, void *arg)
{
    (void)arg;
    memset(chunk, 0xee, size);
    free(chunk);
}

static void do_create(struct model *model)
{
    unsigned reap = below(model, REAPS);
    if (model->reaps[reap]) return;
    int parent = random_reap(model);
    struct reap_options options = {.size = sizeof options, .source = {take, give, NULL}};
    if (below(model, 4) == 0)
        reapCreateWith(&model->reaps[reap], parent < 0 ? NULL : &model->reaps[parent], &options);
    else
        reapCreate(&model->reaps[reap], parent < 0 ? NULL : &model->reaps[parent]);
    ck_assert_ptr_nonnull(model->reaps[reap]);
    model->parent[reap] = parent < 0 ? REAPS : (unsigned)parent;
    model->limits[reap] = 0;
    model->depth[reap] = 0;
    model->born[reap] = parent < 0 ? 0 : model->depth[parent];
    ck_assert_ptr_eq(reapParent(&model->reaps[reap]), parent < 0 ? NULL : model->reaps[parent]);
}

static void do_end(struct model *model, bool destroy)
{
    int reap = random_reap(model);
    if (reap < 0) return;
    void *handle = model->reaps[reap];
    forget(model, (unsigned)reap, destroy);
    if (destroy)
        reapDestroy(&handle);
    else
        reapFreeAll(&handle);
    ck_assert_ptr_eq(handle, model->reaps[reap]);
}

/* --- from reap to reap ----------------------------------------------------------------------- */

static void do_move(struct model *model)
{
    struct object *object = random_object(model, true);
    int to = random_reap(model);
    if (!object || to < 0) return;
    unsigned from = object->reap;
    unsigned char *at = reapMove(object->at, &model->reaps[from], &model->reaps[to]);
    if (was_refused(model, from, (unsigned)to, object->usable, at)) return;
    ck_assert_msg(all(at, object->size, object->fill), "not moved");
    if ((unsigned)to == from) ck_assert_ptr_eq(at, object->at);
    if ((unsigned)to != from) object->depth = model->depth[to];
    object->at = at;
    object->reap = (unsigned)to;
}

static void do_adopt(struct model *model)
{
    int child = random_reap(model), parent = random_reap(model);
    if (child < 0) return;
    unsigned reap = (unsigned)child, to = parent < 0 ? REAPS : (unsigned)parent;
    int result = reapAdopt(&model->reaps[reap], parent < 0 ? NULL : &model->reaps[to]);
    if (is_below(model, to, reap)) {
        ck_assert_int_eq(result, -1);
        ck_assert_int_eq(errno, EINVAL);
        return;
    }
    if (was_refused(model, model->parent[reap], to, live_below(model, reap), result == 0)) return;
    model->parent[reap] = to;
    model->born[reap] = parent < 0 ? 0 : model->depth[to];
    ck_assert_ptr_eq(reapParent(&model->reaps[reap]), parent < 0 ? NULL : model->reaps[to]);
}

/* --- marks ----------------------------------------------------------------------------------- */

static void do_rewind(struct model *model, unsigned reap, unsigned depth)
{
    for (unsigned i = 0; i < REAPS; i++)
        if (model->reaps[i] && model->parent[i] == reap && model->born[i] > depth) forget(model, i, true);
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *object = &model->objects[i];
        if (object->at && object->reap == reap && object->depth > depth) object->at = NULL;
    }
    reapRewind(&model->reaps[reap], &model->marks[reap][depth]);
    model->depth[reap] = depth + 1;
}

static void do_unmark(struct model *model, unsigned reap, unsigned depth)
{
    reapUnmark(&model->reaps[reap], &model->marks[reap][depth]);
    for (unsigned i = 0; i < REAPS; i++)
        if (model->reaps[i] && model->parent[i] == reap && model->born[i] > depth) model->born[i] = depth;
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *object = &model->objects[i];
        if (object->at && object->reap == reap && object->depth > depth) object->depth = depth;
    }
    model->depth[reap] = depth;
}

static void do_mark(struct model *model)
{
    int reap = random_reap(model);
    if (reap < 0) return;
    unsigned open = model->depth[reap], what = below(model, 3);
    if (what == 0 && open < MARKS)
        reapMark(&model->reaps[reap], &model->marks[reap][model->depth[reap]++]);
    else if (what == 1 && open > 0)
        do_rewind(model, (unsigned)reap, below(model, open));
    else if (open > 0)
        do_unmark(model, (unsigned)reap, below(model, open));
    assert_valid(model->reaps[reap]);
}

static void nothing(void *arg) { (void)arg; }

static void do_record(struct model *model)
{
    static const char *names[] = {"a", "request", "a name that is rather longer than the others"};
    int reap = random_reap(model);
    if (reap < 0) return;
    void **handle = &model->reaps[reap];
    switch (below(model, 3)) {
    case 0:
        ck_assert_int_eq(reapSetName(handle, names[below(model, 3)]), 0);
        ck_assert_ptr_nonnull(reapName(handle));
        break;
    case 1:
        ck_assert_int_eq(reapOnDestroy(handle, nothing, model), 0);
        break;
    default:
        reapCancelOnDestroy(handle, nothing, model);
    }
}

/* --- the comparison -------------------------------------------------------------------------- */

struct tally {
    const struct model *model;
    size_t bytes;
    size_t objects;
    unsigned reap;
};

static int tally_model(const struct model *model, unsigned reap, struct tally *tally)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (!model->objects[i].at || model->objects[i].reap != reap) continue;
        tally->bytes += model->objects[i].usable;
        tally->objects++;
    }
    return 0;
}

static int tally_object(void *at, size_t size, void *arg)
{
    struct tally *tally = arg;
    const struct object *object = tally->model->objects;
    while (object < tally->model->objects + OBJECTS && object->at != at) object++;
    ck_assert_msg(object < tally->model->objects + OBJECTS, "an object that the model does not know");
    ck_assert_uint_eq(object->usable, size);
    ck_assert_uint_eq(object->reap, tally->reap);
    check_filled(object);
    tally->bytes += size;
    tally->objects++;
    return 0;
}

static void compare(struct model *model, unsigned reap)
{
    struct reap_stats stats;
    struct tally expected = {model, 0, 0, reap}, walked = expected;
    tally_model(model, reap, &expected);
    assert_valid(model->reaps[reap]);
    ck_assert_int_eq(reapStats(&model->reaps[reap], &stats), 0);
    ck_assert_uint_eq(stats.live_bytes, expected.bytes);
    ck_assert_uint_eq(stats.live_objects, expected.objects);
    ck_assert_uint_eq(stats.limit, model->limits[reap]);
    ck_assert_int_eq(reapWalk(&model->reaps[reap], tally_object, &walked), 0);
    ck_assert_uint_eq(walked.bytes, expected.bytes);
    ck_assert_uint_eq(walked.objects, expected.objects);
}

static void step(struct model *model)
{
    switch (below(model, 100)) {
    case 0:
        do_end(model, true);
        break;
    case 1:
        do_end(model, false);
        break;
    case 2:
    case 3:
    case 4:
        do_create(model);
        break;
    case 5:
    case 6:
        do_record(model);
        break;
    case 7:
        do_limit(model);
        break;
    case 8:
    case 9:
    case 10:
        do_mark(model);
        break;
    case 11:
        do_adopt(model);
        break;
    case 12:
    case 13:
    case 14:
        do_move(model);
        break;
    default:
        switch (below(model, 5)) {
        case 0:
        case 1:
            do_free(model);
            break;
        case 2:
            do_realloc(model);
            break;
        default:
            do_alloc(model);
        }
    }
}

START_TEST(reaps_do_what_the_model_says)
{
    static struct model model;
    const char *seed = getenv("REAP_TEST_SEED"), *steps = getenv("REAP_TEST_STEPS");
    model.random = seed ? strtoull(seed, NULL, 0) : fresh_seed() + (unsigned)_i;
    long n = steps ? strtol(steps, NULL, 0) : STEPS;
    printf("REAP_TEST_SEED=%llu\n", (unsigned long long)model.random);
    fflush(stdout);
    for (long i = 0; i < n; i++) {
        step(&model);
        unsigned reap = (unsigned)(i / EVERY % REAPS);
        if (i % EVERY == 0 && model.reaps[reap]) compare(&model, reap);
    }
    for (unsigned i = 0; i < REAPS; i++)
        if (model.reaps[i] && model.parent[i] == REAPS) reapDestroy(&model.reaps[i]);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("model");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, reaps_do_what_the_model_says, 0, 4);
    return run("reap_model", tests);
}
