/* SPDX-License-Identifier: Apache-2.0 */
/* reap_api.c: the calls of reap.h. Each checks its arguments, and the other modules do the work. */
#define REAP_NO_INLINE /* this file defines the called functions */
#include "reap.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/report.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_depot.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"
#include "reap/remote_free.h"
#include "reap/shared_use.h"
#include "region/reap_free.h"
#include "region/region.h"

const char *reapVersion(void) { return REAP_VERSION; }

reap_misuse_line *reapOnMisuse(reap_misuse_line *fn) { return report_misuse_by(fn); }

/* --- allocation ------------------------------------------------------------------------------ */

static_assert(offsetof(struct reap, self) == offsetof(struct reap_front, self) &&
                  offsetof(struct reap, bump) == offsetof(struct reap_front, bump) &&
                  offsetof(struct reap, end) == offsetof(struct reap_front, end) &&
                  offsetof(struct reap, starts) == offsetof(struct reap_front, starts) && REAP_UNIT == 16,
              "reap_bump in reap.h takes objects as reapMalloc does");

static NOINLINE void *malloc_checked(void *reap, size_t size)
{
    if (!handle_is_plain_known(reap)) return shared_malloc(reap, size);
    void *object = reap_dead_is_asked(reap) ? reap_dead_take(reap, reap_units(size)) : NULL;
    return LIKELY(object != NULL) ? object : reap_alloc(reap, size);
}

void *reapMalloc(void **handle, size_t size)
{
    struct reap *reap = *handle;
    if (UNLIKELY(!handle_may_be_plain(reap))) return shared_malloc(reap, size);
    return reap_alloc_or(reap, size, malloc_checked, reap);
}

void *reapCalloc(void **handle, size_t n, size_t size)
{
    bool zeroed;
    size_t bytes;
    reap_check(handle, "reapCalloc");
    if (UNLIKELY(__builtin_mul_overflow(n, size, &bytes))) return no_memory();
    if (LIKELY(bytes <= REAP_LARGE)) {
        void *object = reapMalloc(handle, bytes);
        return object ? memset(object, 0, bytes) : NULL;
    }
    USED struct reap_use use = reap_use(handle, "reapCalloc");
    void *object = reap_alloc_zeroed(use.reap, bytes, &zeroed);
    if (UNLIKELY(!object) && reap_use_whole(&use)) object = reap_alloc_zeroed(use.reap, bytes, &zeroed);
    return object && !zeroed ? memset(object, 0, bytes) : object;
}

void *reapAlignedAlloc(void **handle, size_t alignment, size_t size)
{
    USED struct reap_use use = reap_use(handle, "reapAlignedAlloc");
    if (alignment == 0 || alignment & (alignment - 1)) {
        errno = EINVAL;
        return NULL;
    }
    return reap_use_malloc(&use, alignment, size);
}

static NOINLINE void *realloc_null(void **handle, size_t size)
{
    USED struct reap_use use = reap_use(handle, "reapRealloc");
    return reap_use_malloc(&use, REAP_UNIT, size);
}

void *reapRealloc(void **handle, void *object, size_t size)
{
    REAP_NOT_NULL(handle, "reapRealloc");
    if (!object) return realloc_null(handle, size);
    struct reap *reap = *handle;
    if (LIKELY(handle_is_plain(reap)))
        return reap_alloc_resize(reap, reap_chunk_of_object(reap, object, "reapRealloc"), object, size);
    return shared_realloc(handle_face(reap, "reapRealloc"), object, size, "reapRealloc");
}

/* What the ways before do not free, in order: a shared reap's object, one in a quiet or swept chunk, one in
 * another chunk in region state (which is listed then), not in the map, or too long. Aborts on misuse. */
static NOINLINE void free_slow(struct reap *reap, void *object)
{
    if (!handle_is_plain_known(reap))
        shared_free(reap, object);
    else if (reap_free_by_chunk(reap, object) || !object)
        return;
    else
        reap_alloc_free(reap, reap_chunk_of_object(reap, object, "reapFree"), object);
}

static NOINLINE void free_in_region(struct reap *reap, void *object)
{
    if (!handle_is_plain_known(reap) || UNLIKELY(!reap_free_in_region(reap, object))) free_slow(reap, object);
}

/* The rare cases end in tail calls, so that the fast paths save no registers. */
void reapFree(void **handle, void *object)
{
    struct reap *reap = *handle;
    if (UNLIKELY(!handle_may_be_plain(reap)))
        shared_free(reap, object);
    else if (UNLIKELY(!reap_free_fast(reap, object)))
        free_in_region(reap, object);
}

/* --- from an object to its reap -------------------------------------------------------------- */

size_t reapUsableSize(const void *object)
{
    if (!object) return 0;
    return reap_remote_usable_checked(chunk_of(object, NULL), object, "reapUsableSize");
}

/* Returns true if a shared reap's object is pending: a tool would see the read of its words. */
static bool was_sent(const struct reap_chunk *copy, const void *object)
{
    return copy->shared && !copy->apart && chunk_is_readable(object, REAP_UNIT) && reap_is_pending(object);
}

/* Returns true if a pointer lies in a live object of the chunk. Another thread may change or end the reap
 * just now. All chunks are frozen, so memory stays; but words may be of different times: each is checked. */
static bool in_object(const struct reap_chunk *chunk, const struct reap_chunk *copy, const void *pointer)
{
    size_t unit = reap_unit(pointer);
    if (unit < copy->first || copy->kind == REAP_SPARE || unit >= copy->end_unit) return false;
    if (copy->kind == REAP_WHOLE) return !was_sent(copy, reap_address(copy->first));
    size_t begin = (uintptr_t)chunk / REAP_UNIT;
    if (!reap_bits_are_readable(chunk, copy)) return false;
    size_t start = bitmap_previous(copy->starts, unit, begin);
    if (start == SIZE_MAX || was_sent(copy, reap_address(start))) return false;
    if (copy->lives) return bitmap_get(copy->lives, start);
    bool is_dead = copy->dead != 0 && copy->is_mapped && reap_chunk_is_dead_at(chunk, start);
    return !is_dead && unit < reap_chunk_top_by(chunk, copy);
}

/* The handle of the reap that has the pointer's object, by a copy of the chunk's header; or NULL. */
static void *owner_by(const struct reap_chunk *chunk, const struct reap_chunk *copy, const void *pointer)
{
    struct reap *reap = copy->owner;
    if (copy->tag != reap_chunk_tag_of(chunk, reap) || !chunk_is_readable(reap, sizeof *reap)) return NULL;
    if (!in_object(chunk, copy, pointer)) return NULL;
    return reap->tag == reap_tag(reap) ? reap : (void *)reap_face_of_others(reap);
}

int reapOf(const void *pointer, void **handle)
{
    handle_check_place(handle, "reapOf");
    *handle = NULL;
    for (bool is_done = false; !is_done;) {
        chunk_freeze();
        const struct reap_chunk *chunk = chunk_around(pointer);
        struct reap_chunk copy;
        if (chunk) memcpy(&copy, chunk, sizeof copy);
        if (chunk) *handle = owner_by(chunk, &copy, pointer);
        is_done =
            !chunk || *handle || memcmp(&copy, chunk, sizeof copy) == 0; /* else it has changed meanwhile */
        chunk_thaw();
    }
    if (*handle) return 0;
    errno = ENOENT;
    return -1;
}

/* --- name, parent --------------------------------------------------------------------------- */

size_t reapTrim(void **handle, size_t keep)
{
    HELD struct reap *reap = reap_hold(handle, "reapTrim");
    struct reap *child = reap_tree_take_cached(&reap->below);
    size_t given = child ? reap_first_chunk(child)->size : 0;
    if (child) reap_chunk_give_back(reap_first_chunk(child));
    given += reap_depot_trim_own();
    FOR_EACH_PART(part, reap)
    {
        reap_chunk_adopt(part);
        given += part->held;
        reap_alloc_take_remote(part);
        limit_suspend(part);
        reap_region_trim(part, keep);
        limit_resume(part);
        given -= part->held;
        keep -= part->spare_bytes;
    }
    return given;
}

void *reapParent(void **handle)
{
    HELD struct reap *reap = reap_hold_lightly(handle, "reapParent");
    return reap->parent ? reap_handle(reap->parent) : NULL;
}

const char *reapName(void **handle)
{
    HELD struct reap *reap = reap_hold_lightly(handle, "reapName");
    const struct reap_name *copy = reap_own_name(reap);
    return copy && !copy->given ? NULL : reap->name;
}

/* Finds room for a name of size bytes: behind the reap for a short one. Records are not used again before a
 * clear, so each has twice the room of the last: all names take at most three times the longest. */
static struct reap_name *name_room(struct reap *reap, size_t size)
{
    struct reap_name *old = reap_own_name(reap), *new = reap_short_name(reap);
    if (old && size <= old->room) return old;
    if (!old && size <= REAP_SHORT_NAME) {
        new->room = REAP_SHORT_NAME;
        return new;
    }
    size_t room = old && size < 2u * old->room ? 2u * old->room : size;
    if (room > REAP_NAME_MAX) room = REAP_NAME_MAX;
    new = reap_alloc_record(reap, sizeof *new + room);
    if (new) new->room = (uint16_t)room;
    return new;
}

static NOINLINE int set_any_name(void **handle, const char *name)
{
    HELD struct reap *reap = reap_hold(handle, "reapSetName");
    if (!name && !reap_own_name(reap)) {
        reap->name = NULL;
        return 0;
    }
    size_t size = name ? strlen(name) + 1 : 1;
    if (size > REAP_NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    struct reap_name *copy = name_room(reap, size);
    if (!copy) return -1;
    memmove(copy->text, name ? name : "", size);
    copy->given = name != NULL;
    reap->name = copy->text;
    return 0;
}

/* Constants of the program that were names before, and are not too long. One may be the end of another. */
enum { KNOWN_NAMES = 64 };
static _Atomic(const char *) known_names[KNOWN_NAMES];
static inline _Atomic(const char *) *known_name(const char *name)
{
    return &known_names[(uintptr_t)name % KNOWN_NAMES];
}

/* The first name of an ordinary reap: a new constant, or as a rule a short one. */
static NOINLINE int set_first_name(void **handle, const char *name)
{
    struct reap *reap = *handle;
    if (UNLIKELY(!handle_is_plain(reap) || reap->name || !name)) return set_any_name(handle, name);
    size_t size = strlen(name) + 1;
    struct reap_name *copy = reap_short_name(reap);
    if (size <= REAP_NAME_MAX && size <= program_left(name)) {
        atomic_store_explicit(known_name(name), name, memory_order_relaxed);
        reap->name = name;
        return 0;
    }
    if (UNLIKELY(size > REAP_SHORT_NAME)) return set_any_name(handle, name);
    memcpy(copy->text, name, size);
    copy->room = REAP_SHORT_NAME;
    copy->given = true;
    reap->name = copy->text;
    return 0;
}

int reapSetName(void **handle, const char *name)
{
    REAP_NOT_NULL(handle, "reapSetName");
    struct reap *reap = *handle;
    bool is_known = atomic_load_explicit(known_name(name), memory_order_relaxed) == name;
    if (!is_known || !handle_is_mapped(reap) || reap->name) return set_first_name(handle, name);
    reap->name = name;
    return 0;
}

/* --- from reap to reap ----------------------------------------------------------------------- */

void *reapMove(void *object, void **from_handle, void **to_handle)
{
    HELD struct reap *from = NULL, *to = NULL;
    reap_hold_both(from_handle, &from, to_handle, &to, "reapMove");
    struct reap *part = reap_part_with(from, object);
    struct reap_chunk *chunk = reap_chunk_of_object(part, object, "reapMove");
    return from == to ? object : reap_alloc_move(part, chunk, object, to);
}

/* --- limits ---------------------------------------------------------------------------------- */

int reapSetLimit(void **handle, size_t bytes)
{
    for (;; sched_yield()) {
        HELD struct reap *reap = reap_hold(handle, "reapSetLimit");
        struct reap_face *held;
        if (!reap_shared_hold_below(reap, &held)) continue;
        reap_alloc_take_remote_below(reap);
        reap_tree_adopt_begin();
        bool done = reap_quota_set(reap, bytes);
        reap_tree_adopt_end();
        reap_shared_let_go_below(held);
        return done ? 0 : -1;
    }
}

void reapOnLimit(void **handle, void (*fn)(void **reap, size_t size, void *arg), void *arg)
{
    HELD struct reap *reap = reap_hold(handle, "reapOnLimit");
    reap_share(reap)->fn = fn;
    reap_share(reap)->arg = arg;
    reap->flags = (uint8_t)(fn ? reap->flags | REAP_ON_LIMIT : reap->flags & ~REAP_ON_LIMIT);
}
