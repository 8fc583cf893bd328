/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c: malloc and its family, and hoard.h's calls. Compiled with -fno-builtin: calls stay calls. */
#include "fuzz_ops.h"

#include <malloc.h>

#if FUZZ_SANITIZED
#define malloc hoard_malloc
#define calloc hoard_calloc
#define realloc hoard_realloc
#define free hoard_free
#define aligned_alloc hoard_aligned_alloc
#define memalign hoard_aligned_alloc
#define posix_memalign hoard_posix_memalign
#define malloc_usable_size hoard_usable_size
#define malloc_trim hoard_trim
#endif

/* The reap that malloc takes from: the innermost that is entered. */
static int taker(void)
{
    return !FUZZ_SANITIZED && me->entered_depth ? me->entered[me->entered_depth - 1] : NONE;
}

static struct object *begin(const struct record *rec)
{
    struct object *object = empty_slot(rec);
    if (!object) return NULL;
    atomic_store(&object->where, RESERVED);
    me->asked = taker();
    errno = 0;
    return object;
}

static void end(struct object *object, void *at, size_t size, size_t alignment)
{
    int reap = me->asked;
    me->asked = NONE;
    atomic_store(&object->where, EMPTY);
    if (!at) {
        check_refused(reap, NONE, size > PTRDIFF_MAX ? 0 : usable_for(size), 0, size);
        return;
    }
    CHECK(size <= PTRDIFF_MAX, "an impossible size was given");
    CHECK((uintptr_t)at % alignment == 0, "not aligned to %zu", alignment);
    object_enter(object, reap, at, size);
}

static bool is_zero(const unsigned char *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i] != 0) return false;
    return true;
}

void heap_malloc(const struct record *rec)
{
    struct object *object = begin(rec);
    size_t size = size_in(taker(), rec->size);
    if (!object) return;
    SAY("o[%u] = malloc(%zu);", slot_of(object), size);
    end(object, malloc(OPAQUE_POINTER(size)), size, 16);
}

void heap_calloc(const struct record *rec)
{
    struct object *object = begin(rec);
    size_t n = 1 + rec->extra % 4, size = size_in(taker(), rec->size);
    if (!object) return;
    if (!(rec->extra & 0x80)) size /= n;
    SAY("o[%u] = calloc(%zu, %zu);", slot_of(object), n, size);
    unsigned char *at = calloc(n, OPAQUE_POINTER(size));
    if (__builtin_mul_overflow(n, size, &size)) size = SIZE_MAX;
    CHECK(!at || is_zero(at, size), "calloc: not zero");
    end(object, at, size, 16);
}

static size_t alignment_of(const struct record *rec) { return (size_t)1 << rec->extra % 17; }

void heap_aligned(const struct record *rec)
{
    struct object *object = begin(rec);
    size_t size = size_in(taker(), rec->size), alignment = alignment_of(rec);
    if (!object) return;
    SAY("o[%u] = aligned_alloc(%zu, %zu);", slot_of(object), alignment, size);
    end(object, aligned_alloc(alignment, size), size, alignment);
}

void heap_memalign(const struct record *rec)
{
    struct object *object = begin(rec);
    size_t size = size_in(taker(), rec->size), alignment = alignment_of(rec);
    if (!object) return;
    SAY("o[%u] = memalign(%zu, %zu);", slot_of(object), alignment, size);
    end(object, memalign(alignment, size), size, alignment);
}

void heap_posix_memalign(const struct record *rec)
{
    struct object *object = begin(rec);
    size_t size = size_in(taker(), rec->size), alignment = alignment_of(rec);
    if (!object) return;
    void *at = NULL;
    SAY("posix_memalign(&o[%u], %zu, %zu);", slot_of(object), alignment, size);
    int error = posix_memalign(&at, alignment, size);
    CHECK(error != EINVAL || alignment < sizeof(void *), "posix_memalign: EINVAL for %zu", alignment);
    CHECK(!error == !!at, "posix_memalign gives %d and %p", error, at);
    if (error == EINVAL) {
        atomic_store(&object->where, EMPTY);
        me->asked = NONE;
        return;
    }
    errno = error;
    end(object, at, size, alignment);
}

void heap_realloc_null(const struct record *rec)
{
    struct object *object = begin(rec);
    size_t size = size_in(taker(), rec->size);
    if (!object) return;
    SAY("o[%u] = realloc(NULL, %zu);", slot_of(object), size);
    end(object, realloc(NULL, OPAQUE_POINTER(size)), size, 16);
}

void heap_strdup(const struct record *rec)
{
    char text[601];
    size_t size = size_of(rec->size) % 600;
    struct object *object = FUZZ_SANITIZED ? NULL : begin(rec);
    if (!object) return;
    memset(text, 'x', size);
    text[size] = '\0';
    SAY("o[%u] = strdup(text(%zu));", slot_of(object), size);
    char *at = NULL;
    if (rec->extra % 3 == 0)
        at = strdup(text);
    else if (rec->extra % 3 == 1 || is_limited(me->asked)) /* asprintf needs more than that for a while */
        at = strndup(text, size);
    else if (asprintf(&at, "%s", text) < 0)
        at = NULL;
    CHECK(!at || strcmp(at, text) == 0, "strdup: not a copy");
    end(object, at, size + 1, 16);
}

/* Returns true if it acts at once, and not only when the reap looks. */
static bool acts_at_once(const struct object *object)
{
    int innermost = me->entered_depth ? me->entered[me->entered_depth - 1] : NONE;
    return object->reap == innermost || me->nodes[object->reap].shared;
}

/* hoard.h's call for what hoard.h gave: the blocks are the same, but one may be built on another malloc. */
static void free_any(const struct object *object, void *at)
{
    if (object->hoards)
        hoard_free(at);
    else
        free(at);
}

void heap_free(const struct record *rec)
{
    struct object *object = rec->extra % 4 ? live_object(rec) : reaps_object(rec);
    if (!object || object == me->held) return;
    void *at = object->at;
    bool later = object->reap != NONE && !acts_at_once(object);
    check_filled(object, object->filled);
    SAY("free(o[%u]);%s", slot_of(object), object->reap == NONE ? "" : " /* a reap's */");
    if (later) me->nodes[object->reap].pending += object->usable;
    object_leave(object);
    errno = MY_ERRNO;
    free_any(object, at);
    CHECK(ERRNO_STAYS, "free() has set errno to %d", errno);
}

/* As free(), for reaps' objects only: others stay as they are, and so do pointers to no object. */
void do_free_any(const struct record *rec)
{
    struct object *object = live_object(rec);
    if (!object || object == me->held) return;
    bool reaps = object->reap != NONE, later = reaps && !acts_at_once(object);
    void *at = rec->extra % 16 ? object->at : rec->extra % 32 ? NULL : (void *)&object;
    check_filled(object, object->filled);
    if (at != object->at) reaps = false;
    SAY("reapFreeAny(o[%u]);%s", slot_of(object), reaps ? "" : " /* of no reap: it stays */");
    if (reaps && later) me->nodes[object->reap].pending += object->usable;
    if (reaps) object_leave(object);
    errno = MY_ERRNO;
    int result = reapFreeAny(at);
    if (reaps)
        CHECK(result == 0 && ERRNO_STAYS, "reapFreeAny gives %d, errno %d", result, errno);
    else
        CHECK(result == -1 && errno == ENOENT, "reapFreeAny gives %d for no reap's, errno %d", result, errno);
    if (!reaps) check_filled(object, object->filled);
}

static void *resize_any(const struct object *object, size_t size, bool array)
{
    if (object->hoards) return hoard_realloc(object->at, size);
#if !FUZZ_SANITIZED
    if (array) return reallocarray(object->at, 1, size);
#endif
    (void)array;
    return realloc(object->at, size);
}

static void resize(struct object *object, size_t size, bool array)
{
    if (!object || me->held || object->builder) return;
    size_t common = size < object->size ? size : object->size, had = object->usable;
    unsigned char *old = object->at;
    bool later = object->reap != NONE && !acts_at_once(object);
    check_filled(object, object->filled);
    me->asked = object->reap;
    me->held = object;
    errno = 0;
    SAY("o[%u] = realloc(o[%u], %zu);", slot_of(object), slot_of(object), size);
    unsigned char *at = resize_any(object, size, array);
    me->asked = NONE;
    me->held = NULL;
    if (!at) {
        check_filled(object, object->filled);
        if (later && me->nodes[object->reap].user_memory && errno == ENOMEM) return;
        size_t more = size > PTRDIFF_MAX ? 0 : usable_for(size), spare = later ? 0 : had;
        check_refused(object->reap, NONE, more > spare ? more - spare : 0, later,
                      size); /* as if by another reap */
        return;
    }
    CHECK(size <= PTRDIFF_MAX, "an impossible size was given");
    object->at = at;
    check_filled(object, common);
    object->at = old;
    if (later && at == old) size = object->size; /* it stays as wide as it is */
    if (later && at != old) me->nodes[object->reap].pending += had;
    bool hoards = object->hoards;
    object_resized(object, at, size);
    object->hoards = hoards;
}

void heap_realloc(const struct record *rec)
{
    resize(rec->extra % 4 ? live_object(rec) : reaps_object(rec), size_of(rec->size), false);
}

void heap_reallocarray(const struct record *rec) { resize(live_object(rec), size_of(rec->size), true); }

void heap_usable(const struct record *rec)
{
    struct object *object = live_object(rec);
    if (!object) return;
    size_t size = object->hoards ? hoard_usable_size(object->at) : malloc_usable_size(object->at);
    CHECK(size == object->usable, "malloc_usable_size is %zu of %zu", size, object->usable);
}

void heap_trim(const struct record *rec)
{
    SAY("malloc_trim(%u);", rec->size);
    if (rec->extra % 2)
        malloc_trim(rec->size);
    else
        hoard_trim(rec->size);
}

static void *hoards_block(const struct record *rec, size_t size, size_t *alignment)
{
    void *at = NULL;
    *alignment = 16;
    switch (rec->extra >> 5) {
    case 0: return hoard_calloc(1, size);
    case 1: return hoard_realloc(NULL, size);
    case 2: return hoard_aligned_alloc(*alignment = alignment_of(rec), size);
    case 3:
        *alignment = alignment_of(rec) < 8 ? 8 : alignment_of(rec);
        errno = hoard_posix_memalign(&at, *alignment, size);
        return at;
    default: return hoard_malloc(size);
    }
}

void hoard_any(const struct record *rec)
{
    struct object *object = empty_slot(rec);
    size_t size = size_in(taker(), rec->size), alignment;
    if (!object) return;
    errno = 0;
    SAY("o[%u] = hoard_malloc(%zu); /* or another of that family: %u */", slot_of(object), size,
        rec->extra >> 5);
    unsigned char *at = hoards_block(rec, size, &alignment);
    if (!at) {
        check_refused(NONE, NONE, size, 0, size);
        return;
    }
    CHECK((uintptr_t)at % alignment == 0, "not aligned to %zu", alignment);
    CHECK(rec->extra >> 5 || is_zero(at, size), "hoard_calloc: not zero");
    object_enter(object, NONE, at, size);
    object->hoards = true;
}

void hoard_look(const struct record *rec)
{
    struct hoard_stats stats;
    if (!FUZZ_FIGURES) return;
    CHECK(hoard_stats(&stats) == 0 && stats.path, "hoard_stats");
    CHECK(fuzz_threaded || stats.live_bytes <= stats.held_bytes, "hoard_stats: %zu bytes live, %zu held",
          stats.live_bytes, stats.held_bytes);
    CHECK(hoard_stats(NULL) == -1 && errno == EINVAL, "hoard_stats(NULL)");
    (void)rec;
}
