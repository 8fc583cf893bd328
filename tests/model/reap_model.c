/* SPDX-License-Identifier: Apache-2.0 */
#include "reap_model.h"

#include <errno.h>
#include <string.h>

/* --- by chance ------------------------------------------------------------------------------- */

size_t model_size(struct model *model)
{
    switch (model_random(model, 40)) {
    case 0: return model_random(model, 200000);
    case 1: return model_random(model, 33000);
    case 2: return 0;
    case 3:
    case 4:
    case 5: return model_random(model, 3000);
    default: return model_random(model, 300);
    }
}

struct object *model_object(struct model *model, bool alive)
{
    for (unsigned i = 0; i < 20; i++) {
        struct object *object = &model->objects[model_random(model, OBJECTS)];
        if ((object->at != NULL) == alive) return object;
    }
    return NULL;
}

int model_reap(struct model *model)
{
    unsigned reap = model_random(model, REAPS);
    return model->reaps[reap] ? (int)reap : -1;
}

/* --- objects --------------------------------------------------------------------------------- */

size_t model_usable(size_t size) { return size == 0 ? 16 : (size + 15) / 16 * 16; }

void model_check_filled(const struct object *object)
{
    ck_assert_msg(all_bytes(object->at, object->size, object->fill), "an object has changed");
}

void model_enter(struct model *model, struct object *object, unsigned reap, void *at, size_t size)
{
    void *owner;
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq((uintptr_t)at % 16, 0);
    ck_assert_uint_eq(reapUsableSize(at), model_usable(size));
    ck_assert_int_eq(reapOf((char *)at + model_random(model, (unsigned)model_usable(size)), &owner), 0);
    ck_assert_ptr_eq(owner, model->reaps[reap]);
    unsigned depth = object->at == at ? object->depth : model->depth[reap];
    *object = (struct object){
        at, size, model_usable(size), reap, (unsigned char)random_next(&model->random), depth};
    memset(at, object->fill, size);
}

/* --- reaps ----------------------------------------------------------------------------------- */

bool model_is_below(const struct model *model, unsigned reap, unsigned top)
{
    for (; reap != REAPS; reap = model->parent[reap])
        if (reap == top) return true;
    return false;
}

size_t model_live_below(const struct model *model, unsigned top)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct object *object = &model->objects[i];
        if (object->at && model_is_below(model, object->reap, top)) bytes += object->usable;
    }
    return bytes;
}

static unsigned reaps_below(const struct model *model, unsigned top)
{
    unsigned count = 0;
    for (unsigned i = 0; i < REAPS; i++) count += model->reaps[i] && model_is_below(model, i, top);
    return count;
}

bool model_was_refused(const struct model *model, unsigned from, unsigned reap, size_t more,
                       unsigned newcomers, bool done)
{
    bool must = false, may = false;
    for (unsigned i = reap; i != REAPS; i = model->parent[i]) {
        if (model_is_below(model, from, i)) continue;
        size_t limit = model->limits[i], live = limit ? model_live_below(model, i) + more : 0;
        size_t early = reaps_below(model, i) + newcomers > 1 ? limit / 16 : 0;
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

void model_forget(struct model *model, unsigned top, bool destroyed)
{
    bool gone[REAPS];
    for (unsigned i = 0; i < REAPS; i++) gone[i] = model->reaps[i] && model_is_below(model, i, top);
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *object = &model->objects[i];
        if (object->at && gone[object->reap]) object->at = NULL;
    }
    for (unsigned i = 0; i < REAPS; i++)
        if (gone[i] && (i != top || destroyed)) model->reaps[i] = NULL;
    model->depth[top] = 0;
}

/* --- the comparison -------------------------------------------------------------------------- */

struct tally {
    const struct model *model;
    size_t bytes;
    size_t objects;
    unsigned reap;
};

static void tally_model(const struct model *model, unsigned reap, struct tally *tally)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (!model->objects[i].at || model->objects[i].reap != reap) continue;
        tally->bytes += model->objects[i].usable;
        tally->objects++;
    }
}

static int tally_object(void *at, size_t size, void *arg)
{
    struct tally *tally = arg;
    const struct object *object = tally->model->objects;
    while (object < tally->model->objects + OBJECTS && object->at != at) object++;
    ck_assert_msg(object < tally->model->objects + OBJECTS, "an object that the model does not know");
    ck_assert_uint_eq(object->usable, size);
    ck_assert_uint_eq(object->reap, tally->reap);
    model_check_filled(object);
    tally->bytes += size;
    tally->objects++;
    return 0;
}

void model_compare(const struct model *model, unsigned reap)
{
    struct tally expected = {model, 0, 0, reap}, walked = expected;
    tally_model(model, reap, &expected);
    void *handle = model->reaps[reap];
    struct reap_stats stats = stats_of(handle);
    ck_assert_uint_eq(stats.live_bytes, expected.bytes);
    ck_assert_uint_eq(stats.live_objects, expected.objects);
    ck_assert_uint_eq(stats.limit, model->limits[reap]);
    ck_assert_int_eq(reapWalk(&handle, tally_object, &walked), 0);
    ck_assert_uint_eq(walked.bytes, expected.bytes);
    ck_assert_uint_eq(walked.objects, expected.objects);
}
