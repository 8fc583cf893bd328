/* SPDX-License-Identifier: Apache-2.0 */
/* profile_reaps.c: reap.h's calls while the profile is on, and samples without a call.
 *
 * A program, and libreap-apr for it, takes objects of a reap without any call, while bump < end (struct
 * reap_front). So the profile lowers `end` to the next sample point, if one lies in the hole. The object that
 * reaches the point comes to reapMalloc, which finds the rest of the hole as it finds it under a limit, and
 * puts `end` back.
 *
 *     hole   bump ^ object object object | end, lowered: a point      | the hole's true end
 *
 * Each call here looks at the hole before and after the real one. A hole that has changed is a new range of
 * bytes on the thread's line, as are the bytes that a free has given back to it. Whether `end` is lowered is
 * known by a small table. The hole that a reap had when the profile was turned on is not watched: its next
 * one is.
 *
 * Threads: those that use the reap, as for the real calls.
 */
#include "profile_sample.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#define REAP_OPTIONAL
#include "reap.h"

enum { UNIT = 16, LOWERED = 4096 };

/* Where ends are lowered; an entry that another one has replaced costs a sample. */
static struct {
    const struct reap_front *front;
    const char *end;
} lowered[LOWERED];

struct hole {
    struct reap_front *front; /* NULL: no reap is here to look at */
    char *bump, *end;
};

static size_t entry_of(const struct reap_front *front) { return (uintptr_t)front / 1024 % LOWERED; }

static struct hole hole_of(void **reap)
{
    struct reap_front *front = reap ? (struct reap_front *)*reap : NULL;
    return front ? (struct hole){front, front->bump, front->end} : (struct hole){.front = NULL};
}

/* The bytes that an object takes of a hole. */
static size_t window_of(size_t size)
{
    if (size > PTRDIFF_MAX) return 1; /* the call fails */
    return size == 0 ? UNIT : (size + UNIT - 1) / UNIT * UNIT;
}

static void watch(struct reap_front *front, size_t bytes)
{
    if (profile_passes(bytes)) return;
    size_t before = profile_first_point(bytes);
    if (before >= bytes) return;
    size_t i = entry_of(front);
    front->end = front->bump + before / UNIT * UNIT;
    __atomic_store_n(&lowered[i].front, front, __ATOMIC_RELAXED);
    __atomic_store_n(&lowered[i].end, front->end, __ATOMIC_RELAXED);
}

/* Takes the hole's new bytes onto the thread's line. */
static void watch_changes(const struct hole *before)
{
    struct reap_front *front = before->front;
    if (front->end != before->end)
        watch(front, (size_t)(front->end - front->bump));
    else if (front->bump < before->bump)
        watch(front, (size_t)(before->bump - front->bump));
}

static bool is_lowered(const struct hole *hole)
{
    size_t i = entry_of(hole->front);
    return __atomic_load_n(&lowered[i].front, __ATOMIC_RELAXED) == hole->front &&
           __atomic_load_n(&lowered[i].end, __ATOMIC_RELAXED) == hole->end;
}

static size_t usable(void *object) { return reapUsableSize(object); }

/* After a call that has made an object of size bytes. */
static void *made(const struct hole *before, void *object, size_t size)
{
    size_t window = window_of(size);
    if (!before->front) return object;
    bool fits = size - 1 < (size_t)(before->end - before->bump), is_sampled;
    if (fits && object == before->bump && before->front->end == before->end) return object;
    if (!fits && object && object == before->bump && is_lowered(before))
        is_sampled = true;
    else
        is_sampled = profile_counts(window);
    if (is_sampled)
        profile_note(object, size, window, usable); /* its record may raise the end of a limited reap */
    if (before->front->bump < before->front->end) watch_changes(before);
    return object;
}

/* After a call that has given memory back. */
static void given(const struct hole *before)
{
    if (before->front && before->front->bump < before->front->end) watch_changes(before);
}

/* After a call that makes a record. In a limited reap it raises a lowered end. */
static void recorded(const struct hole *before)
{
    struct reap_front *front = before->front;
    if (front && front->bump == before->bump && front->end > before->end) watch_changes(before);
}

static void forget(const void *object)
{
    if (profile_may_have(object)) profile_forget_sampled(object, true);
}

/* --- life ------------------------------------------------------------------------------------ */

static void (*real_reapCreate)(void **, void **);
static reap_t *(*real_reapNew)(reap_t *);
static int (*real_reapCreateWith)(void **, void **, const struct reap_options *);
static void (*real_reapFreeAll)(void **);
static void (*real_reapRewind)(void **, const reap_mark *);

static void watch_new(struct reap_front *front)
{
    if (front && front->bump < front->end) watch(front, (size_t)(front->end - front->bump));
}

static void instead_reapCreate(void **reap, void **parent)
{
    real_reapCreate(reap, parent);
    watch_new(*reap);
}

static reap_t *instead_reapNew(reap_t *parent)
{
    reap_t *reap = real_reapNew(parent);
    watch_new(reap);
    return reap;
}

static int instead_reapCreateWith(void **reap, void **parent, const struct reap_options *options)
{
    int result = real_reapCreateWith(reap, parent, options);
    if (result == 0) watch_new(*reap);
    return result;
}

/* The handle may lie in an object of the reap. */
static void instead_reapFreeAll(void **reap)
{
    struct hole before = hole_of(reap);
    real_reapFreeAll(reap);
    given(&before);
}

static void instead_reapRewind(void **reap, const reap_mark *mark)
{
    struct hole before = hole_of(reap);
    real_reapRewind(reap, mark);
    given(&before);
}

static int (*real_reapOnDestroy)(void **, void (*)(void *), void *);
static int (*real_reapSetName)(void **, const char *);
static int (*real_reapSetLimit)(void **, size_t);

static int instead_reapOnDestroy(void **reap, void (*fn)(void *arg), void *arg)
{
    struct hole before = hole_of(reap);
    int result = real_reapOnDestroy(reap, fn, arg);
    recorded(&before);
    return result;
}

static int instead_reapSetName(void **reap, const char *name)
{
    struct hole before = hole_of(reap);
    int result = real_reapSetName(reap, name);
    recorded(&before);
    return result;
}

static int instead_reapSetLimit(void **reap, size_t bytes)
{
    struct hole before = hole_of(reap);
    int result = real_reapSetLimit(reap, bytes);
    recorded(&before);
    return result;
}

/* --- objects --------------------------------------------------------------------------------- */

static void (*real_reapFree)(void **, void *);
static int (*real_reapFreeAny)(void *);
static void *(*real_reapMove)(void *, void **, void **);
static char *(*real_reapVprintf)(void **, const char *, va_list);
static char *(*real_reapPrintf)(void **, const char *, ...); /* found, and not called */

#define MADE(name, type, parameters, arguments, size)                                                        \
    static type *(*real_##name)parameters;                                                                   \
    static type *instead_##name parameters                                                                   \
    {                                                                                                        \
        struct hole before = hole_of(reap);                                                                  \
        return made(&before, real_##name arguments, size);                                                   \
    }

/* A product that overflows makes no object. */
static size_t product(size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes;
}

MADE(reapMalloc, void, (void **reap, size_t size), (reap, size), size)
MADE(reapCalloc, void, (void **reap, size_t n, size_t size), (reap, n, size), product(n, size))
MADE(reapAlignedAlloc, void, (void **reap, size_t alignment, size_t size), (reap, alignment, size), size)
MADE(reapStrdup, char, (void **reap, const char *s), (reap, s), strlen(s) + 1)
MADE(reapStrndup, char, (void **reap, const char *s, size_t n), (reap, s, n), strnlen(s, n) + 1)
MADE(reapMemdup, void, (void **reap, const void *bytes, size_t n), (reap, bytes, n), n)

static char *instead_reapVprintf(void **reap, const char *format, va_list args)
{
    struct hole before = hole_of(reap);
    char *text = real_reapVprintf(reap, format, args);
    return made(&before, text, text ? strlen(text) + 1 : 0);
}

static char *instead_reapPrintf(void **reap, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = instead_reapVprintf(reap, format, args);
    va_end(args);
    return text;
}

/* Resizing is a free, and an object of the new size, in the same place or another. */
static void *(*real_reapRealloc)(void **, void *, size_t);
static void *instead_reapRealloc(void **reap, void *object, size_t size)
{
    struct hole before = hole_of(reap);
    if (object) forget(object);
    return made(&before, real_reapRealloc(reap, object, size), size);
}

static void instead_reapFree(void **reap, void *object)
{
    struct hole before = hole_of(reap);
    forget(object);
    real_reapFree(reap, object);
    given(&before);
}

static int instead_reapFreeAny(void *object)
{
    profile_forget(object);
    return real_reapFreeAny(object);
}

/* The object is the other reap's from now on, and may be at another place. */
static void *instead_reapMove(void *object, void **from, void **to)
{
    struct hole before = hole_of(to);
    if (object) forget(object);
    void *moved =
        real_reapMove(object, from, to); /* what is no object ends the program with this call's name */
    if (moved) return made(&before, moved, reapUsableSize(moved));
    given(&before);
    return NULL;
}

#pragma GCC diagnostic ignored "-Wpedantic"
#define CALL(name)                                                                                           \
    {                                                                                                        \
#name, (void *)instead_##name, (void **)(void *)&real_##name, true                                   \
    }
const struct profile_call profile_reaps[] = {
    CALL(reapCreate),         CALL(reapNew),       CALL(reapCreateWith), CALL(reapFreeAll),
    CALL(reapRewind),         CALL(reapMalloc),    CALL(reapCalloc),     CALL(reapAlignedAlloc),
    CALL(reapStrdup),         CALL(reapStrndup),   CALL(reapMemdup),     CALL(reapVprintf),
    CALL(reapPrintf),         CALL(reapRealloc),   CALL(reapFree),       CALL(reapFreeAny),
    CALL(reapMove),           CALL(reapOnDestroy), CALL(reapSetName),    CALL(reapSetLimit),
    {NULL, NULL, NULL, false}};
