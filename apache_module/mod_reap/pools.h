/* SPDX-License-Identifier: Apache-2.0 */
/* pools: what a survey of this process's pools adds up to.
 *
 * A pool's tag is the name of its reap (apr_pool_tag). A pool is any reap here: httpd has no others, unless
 * a module makes some.
 */
#ifndef MOD_REAP_POOLS_H
#define MOD_REAP_POOLS_H

#include "text.h"

#include "library.h"

struct pool_sums {
    uint64_t pools, bytes, live_bytes, objects, chunks;
    uint64_t inherited; /* of the bytes, those of pools that the child has from the first process */
};

struct pool_tag {
    char *name; /* malloc's */
    struct pool_sums sums;
};

/* Tags in the order in which they were met, or sorted. */
struct pool_tags {
    struct pool_tag *tags;
    size_t n, room;
};

void pools_add(struct pool_sums *to, const struct pool_sums *sums);

struct pool_sums pool_sums_of(const struct reap_view *view);

/* The tags on the way to the pool that a survey is at, by depth. Begins as zeros. */
enum { POOL_DEPTHS = 64, POOL_TAG = 40 };
struct pool_path {
    char tags[POOL_DEPTHS][POOL_TAG]; /* of a pool without one: that of the next above which has one */
    char text[POOL_TAG + sizeof "(below )"];
};

/* The pool's tag; of one without, "(below TAG)" with that of the next above which has one, or "(root without
 * tag)". To be asked for each pool of a survey, and good until the next one. */
const char *pool_tag_of(struct pool_path *path, const struct reap_view *view);

/* Adds to the tag of this name. A tag that no memory is left for is left out. */
void pool_tags_add(struct pool_tags *tags, const char *name, const struct pool_sums *sums);
void pool_tags_sort(struct pool_tags *tags); /* the most bytes first */
void pool_tags_free(struct pool_tags *tags);

/* "request 8192, transaction 16384 (2 pools)": the n tags with most bytes, of the reap and below. */
struct text pools_largest_tags(void **reap, size_t n);

/* The pools that hold most by themselves, of all of the process; returns how many. Nothing is allocated for
 * the result, since this is for when there is no memory; the survey itself may fail then. */
struct pool_top {
    void *reap;
    size_t bytes, objects;
    char tag[POOL_TAG];
};
size_t pools_top(struct pool_top *top, size_t n);

/* A line for each pool, indented, no more than n. NULL: all of the process. */
struct text pools_tree_text(void **reap, unsigned n);

#endif
