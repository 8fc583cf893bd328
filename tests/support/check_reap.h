/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap.h: what the Check programs for reaps share. */
#ifndef CHECK_REAP_H
#define CHECK_REAP_H

#include "check_backend.h"

#include "reap.h"
#include "reap/reap_shared.h"
#include "reap/validate.h"

/* The reap itself, also of a shared one. */
static inline const struct reap *reap_behind(void *handle)
{
    return handle_is_plain(handle) ? handle : ((struct reap_face *)handle)->reap;
}

#define assert_valid(handle)                                                                                 \
    do {                                                                                                     \
        const char *why_;                                                                                    \
        ck_assert_msg(reap_is_valid(reap_behind(handle), &why_), "does not hold: %s", why_);                 \
    } while (0)

static inline struct reap_stats stats_of(void *handle)
{
    struct reap_stats stats;
    assert_valid(handle);
    ck_assert_int_eq(reapStats(&handle, &stats), 0);
    return stats;
}

/* A shared reap. Called in children of forks too, in which Check's own lock may be held for ever. */
static inline void *new_shared(void **parent, size_t limit)
{
    void *shared;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED, .limit = limit};
    if (reapCreateWith(&shared, parent, &options) != 0) abort();
    return shared;
}

/* For options of the mode's. */
static inline unsigned flags_of_mode(void) { return reap_mode == MODE_ORDINARY ? 0 : REAP_SHARED; }

static inline void create_in_mode(void **handle, void **parent)
{
    struct reap_options options = {.size = sizeof options, .flags = flags_of_mode()};
    if (reap_mode == MODE_ORDINARY)
        reapCreate(handle, parent);
    else
        reapCreateWith(handle, parent, &options);
}
#define reapCreate(handle, parent) create_in_mode(handle, parent)

/* A source of pages which nobody touches again after they went back. */
static inline void *take_pages(size_t size, void *arg)
{
    (void)arg;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static inline void give_pages(void *pages, size_t size, void *arg)
{
    (void)arg;
    ck_assert_int_eq(mprotect(pages, size, PROT_NONE), 0);
}

#endif
