/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_model.c: reaps against a small shadow model, for Valgrind, emulators and objects that are apart:
 * random calls on a few nested reaps. tests/fuzz has the big one, which needs malloc to be ours.
 * REAP_TEST_SEED repeats a run, REAP_TEST_STEPS makes it longer. */
#include "reap_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20000, EVERY = 64 };

/* --- the calls ------------------------------------------------------------------------------- */

static void do_alloc(struct model *model)
{
    struct object *object = model_object(model, false);
    int reap = model_reap(model);
    if (!object || reap < 0) return;
    void **handle = &model->reaps[reap];
    size_t size = model_size(model), alignment = (size_t)1 << model_random(model, 15);
    unsigned char *at;
    switch (model_random(model, 8)) {
    case 0:
        at = reapCalloc(handle, 1, size);
        ck_assert_msg(!at || all_bytes(at, size, 0), "not zero");
        break;
    case 1:
        at = reapAlignedAlloc(handle, alignment, size);
        ck_assert_uint_eq((uintptr_t)at % alignment, 0);
        break;
    default: at = reapMalloc(handle, size);
    }
    if (model_was_refused(model, REAPS, (unsigned)reap, model_usable(size), 0, at)) return;
    model_enter(model, object, (unsigned)reap, at, size);
}

static void do_free(struct model *model)
{
    struct object *object = model_object(model, true);
    if (!object) return;
    model_check_filled(object);
    reapFree(&model->reaps[object->reap], object->at);
    object->at = NULL;
}

static void do_realloc(struct model *model)
{
    struct object *object = model_object(model, true);
    if (!object) return;
    size_t size = model_size(model), common = size < object->size ? size : object->size;
    model_check_filled(object);
    unsigned char *at = reapRealloc(&model->reaps[object->reap], object->at, size);
    if (model_was_refused(model, REAPS, object->reap, model_usable(size) - object->usable, 0, at)) return;
    ck_assert_msg(all_bytes(at, common, object->fill), "not copied");
    model_enter(model, object, object->reap, at, size);
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
    unsigned reap = model_random(model, REAPS);
    if (model->reaps[reap]) return;
    int parent = model_reap(model);
    struct reap_options options = {.size = sizeof options, .flags = flags_of_mode()};
    if (model_random(model, 2)) options.flags = REAP_SHARED;
    if (model_random(model, 2)) options.source = (struct reap_source){take, give, NULL};
    if (model_random(model, 2))
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
    int reap = model_reap(model);
    if (reap < 0) return;
    void *handle = model->reaps[reap];
    model_forget(model, (unsigned)reap, destroy);
    if (destroy)
        reapDestroy(&handle);
    else
        reapFreeAll(&handle);
    ck_assert_ptr_eq(handle, model->reaps[reap]);
}

/* --- from reap to reap ----------------------------------------------------------------------- */

static void do_move(struct model *model)
{
    struct object *object = model_object(model, true);
    int to = model_reap(model);
    if (!object || to < 0) return;
    unsigned from = object->reap;
    unsigned char *at = reapMove(object->at, &model->reaps[from], &model->reaps[to]);
    if (model_was_refused(model, from, (unsigned)to, object->usable, 0, at)) return;
    ck_assert_msg(all_bytes(at, object->size, object->fill), "not moved");
    if ((unsigned)to == from) ck_assert_ptr_eq(at, object->at);
    if ((unsigned)to != from) object->depth = model->depth[to];
    object->at = at;
    object->reap = (unsigned)to;
}

static void do_adopt(struct model *model)
{
    int child = model_reap(model), parent = model_reap(model);
    if (child < 0) return;
    unsigned reap = (unsigned)child, to = parent < 0 ? REAPS : (unsigned)parent;
    int result = reapAdopt(&model->reaps[reap], parent < 0 ? NULL : &model->reaps[to]);
    if (model_is_below(model, to, reap)) {
        ck_assert_int_eq(result, -1);
        ck_assert_int_eq(errno, EINVAL);
        return;
    }
    size_t live = model_live_below(model, reap);
    if (model_was_refused(model, model->parent[reap], to, live, 1, result == 0)) return;
    model->parent[reap] = to;
    model->born[reap] = parent < 0 ? 0 : model->depth[to];
    ck_assert_ptr_eq(reapParent(&model->reaps[reap]), parent < 0 ? NULL : model->reaps[to]);
}

/* --- limits ---------------------------------------------------------------------------------- */

static void do_limit(struct model *model)
{
    int reap = model_reap(model);
    if (reap < 0) return;
    size_t live = model_live_below(model, (unsigned)reap);
    size_t limit = model_random(model, 3) == 0
                       ? 0
                       : live / 2 + model_random(model, 3) * (live / 2) + model_random(model, 100000);
    int result = reapSetLimit(&model->reaps[reap], limit);
    if (limit == 0 || live <= limit / 16 * 16) {
        ck_assert_int_eq(result, 0);
        model->limits[reap] = limit;
    } else {
        ck_assert_int_eq(result, -1);
        ck_assert_int_eq(errno, ENOMEM);
    }
}

/* --- marks ----------------------------------------------------------------------------------- */

static void do_rewind(struct model *model, unsigned reap, unsigned depth)
{
    for (unsigned i = 0; i < REAPS; i++)
        if (model->reaps[i] && model->parent[i] == reap && model->born[i] > depth)
            model_forget(model, i, true);
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
    int reap = model_reap(model);
    if (reap < 0) return;
    unsigned open = model->depth[reap], what = model_random(model, 3);
    if (what == 0 && open < MARKS)
        reapMark(&model->reaps[reap], &model->marks[reap][model->depth[reap]++]);
    else if (what == 1 && open > 0)
        do_rewind(model, (unsigned)reap, model_random(model, open));
    else if (open > 0)
        do_unmark(model, (unsigned)reap, model_random(model, open));
    assert_valid(model->reaps[reap]);
}

static void nothing(void *arg) { (void)arg; }

static void do_record(struct model *model)
{
    static const char *names[] = {"a", "request", "a name that is rather longer than the others"};
    int reap = model_reap(model);
    if (reap < 0) return;
    void **handle = &model->reaps[reap];
    switch (model_random(model, 3)) {
    case 0:
        ck_assert_int_eq(reapSetName(handle, names[model_random(model, 3)]), 0);
        ck_assert_ptr_nonnull(reapName(handle));
        break;
    case 1: ck_assert_int_eq(reapOnDestroy(handle, nothing, model), 0); break;
    default: reapCancelOnDestroy(handle, nothing, model);
    }
}

static void step(struct model *model)
{
    switch (model_random(model, 100)) {
    case 0: do_end(model, true); break;
    case 1: do_end(model, false); break;
    case 2:
    case 3:
    case 4: do_create(model); break;
    case 5:
    case 6: do_record(model); break;
    case 7: do_limit(model); break;
    case 8:
    case 9:
    case 10: do_mark(model); break;
    case 11: do_adopt(model); break;
    case 12:
    case 13:
    case 14: do_move(model); break;
    default:
        switch (model_random(model, 5)) {
        case 0:
        case 1: do_free(model); break;
        case 2: do_realloc(model); break;
        default: do_alloc(model);
        }
    }
}

TEST(reaps_do_what_the_model_says, .times = 4)
{
    static struct model model;
    const char *steps = getenv("REAP_TEST_STEPS");
    long n = steps ? strtol(steps, NULL, 0) : STEPS;
    model.random = random_seed();
    for (long i = 0; i < n; i++) {
        step(&model);
        unsigned reap = (unsigned)(i / EVERY % REAPS);
        if (i % EVERY == 0 && model.reaps[reap]) model_compare(&model, reap);
    }
    for (unsigned i = 0; i < REAPS; i++)
        if (model.reaps[i] && model.parent[i] == REAPS) reapDestroy(&model.reaps[i]);
}

int main(void) { return run_tests((struct suite){.modes = ALL_MODES, .seconds = 120}); }
