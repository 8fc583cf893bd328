/* SPDX-License-Identifier: Apache-2.0 */
/* reap_model.h: the shadow model of check_reap_model: a few nested reaps, and a table that says what must be
 * where. Each object is filled with bytes of its own. What a function finds to be wrong ends the test. */
#ifndef REAP_MODEL_H
#define REAP_MODEL_H

#include "support/check_reap.h"

enum { REAPS = 6, OBJECTS = 600, MARKS = 5 };

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

static inline unsigned model_random(struct model *model, unsigned n)
{
    return random_below(&model->random, n);
}

/* --- by chance ------------------------------------------------------------------------------- */

/* A size: mostly small, now and then up to a large object. */
size_t model_size(struct model *model);

/* An entry, with a live object or free; NULL if none is found. */
struct object *model_object(struct model *model, bool alive);

/* A reap that is alive, or -1. */
int model_reap(struct model *model);

/* --- objects --------------------------------------------------------------------------------- */

/* What reapUsableSize has to say of an object of the size. */
size_t model_usable(size_t size);

void model_check_filled(const struct object *object);

/* Enters and fills an object that a reap has just given, or resized. */
void model_enter(struct model *model, struct object *object, unsigned reap, void *at, size_t size);

/* --- reaps ----------------------------------------------------------------------------------- */

/* Returns true if a reap is another one, or below it. */
bool model_is_below(const struct model *model, unsigned reap, unsigned top);

/* The live bytes of a reap and all below it. */
size_t model_live_below(const struct model *model, unsigned top);

/* Has a call that would make `more` bytes live in a reap, which came from another one (REAPS: from none),
 * done what the limits say? Where several reaps share one, `newcomers` among them, the sixteenth that may be
 * anybody's room says neither. */
bool model_was_refused(const struct model *model, unsigned from, unsigned reap, size_t more,
                       unsigned newcomers, bool done);

/* Takes out what goes with a reap; the reap itself only when it is destroyed. */
void model_forget(struct model *model, unsigned top, bool destroyed);

/* Returns true if the reap has exactly what the model says. */
void model_compare(const struct model *model, unsigned reap);

#endif
