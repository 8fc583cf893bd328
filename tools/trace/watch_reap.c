/* SPDX-License-Identifier: Apache-2.0 */
/* watch_reap.c: reaps' calls. A reap is a pool by its handle. The library has objects made by these calls,
 * and not inline, where it finds reap_trace_is_here. An object that a builder makes is not seen, nor one that
 * reapMove moves. */
#define REAP_NO_INLINE
#include <reap.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

PUBLIC extern const char reap_trace_is_here[];
const char reap_trace_is_here[] = REAP_VERSION;

void reapCreate(void **reap, void **parent)
{
    NEXT(reapCreate)(reap, parent);
    watch_pool(TRACE_POOL, *reap, parent ? *parent : NULL, 0);
}

int reapCreateWith(void **reap, void **parent, const struct reap_options *options)
{
    int status = NEXT(reapCreateWith)(reap, parent, options);
    if (status == 0) watch_pool(TRACE_POOL, *reap, parent ? *parent : NULL, 0);
    return status;
}

reap_t *reapNew(reap_t *parent)
{
    reap_t *reap = NEXT(reapNew)(parent);
    watch_pool(TRACE_POOL, reap, parent, 0);
    return reap;
}

void reapFreeAll(void **reap)
{
    void *was = *reap;
    NEXT(reapFreeAll)(reap);
    watch_pool(TRACE_POOL_CLEAR, was, NULL, 0);
}

void reapDestroy(void **reap)
{
    void *was = *reap;
    watch_pool(TRACE_POOL_ENDING, was, NULL, 0);
    NEXT(reapDestroy)(reap);
    watch_pool(TRACE_POOL_END, was, NULL, 0);
}

int reapAdopt(void **reap, void **new_parent)
{
    int status = NEXT(reapAdopt)(reap, new_parent);
    if (status == 0) watch_pool(TRACE_POOL_ADOPT, *reap, new_parent ? *new_parent : NULL, 0);
    return status;
}

void reapMark(void **reap, reap_mark *mark)
{
    NEXT(reapMark)(reap, mark);
    watch_pool(TRACE_POOL_MARK, *reap, NULL, mark->number);
}

void reapRewind(void **reap, const reap_mark *mark)
{
    NEXT(reapRewind)(reap, mark);
    watch_pool(TRACE_POOL_REWIND, *reap, NULL, mark->number);
}

/* --- objects --------------------------------------------------------------------------------------- */

void *reapMalloc(void **reap, size_t size)
{
    if (!watch_enter()) return NEXT(reapMalloc)(reap, size);
    return watch_pool_made(NEXT(reapMalloc)(reap, size), *reap, size, CALLER);
}

void *reapCalloc(void **reap, size_t n, size_t size)
{
    if (!watch_enter()) return NEXT(reapCalloc)(reap, n, size);
    return watch_pool_made(NEXT(reapCalloc)(reap, n, size), *reap, n * size, CALLER);
}

void *reapAlignedAlloc(void **reap, size_t alignment, size_t size)
{
    if (!watch_enter()) return NEXT(reapAlignedAlloc)(reap, alignment, size);
    return watch_pool_made(NEXT(reapAlignedAlloc)(reap, alignment, size), *reap, size, CALLER);
}

void *reapRealloc(void **reap, void *object, size_t size)
{
    if (!watch_enter()) return NEXT(reapRealloc)(reap, object, size);
    if (!object) return watch_pool_made(NEXT(reapRealloc)(reap, object, size), *reap, size, CALLER);
    uint64_t before = recorder_now();
    return watch_moved(object, NEXT(reapRealloc)(reap, object, size), size ? size : 1, before, CALLER);
}

void *reapMemdup(void **reap, const void *bytes, size_t n)
{
    if (!watch_enter()) return NEXT(reapMemdup)(reap, bytes, n);
    return watch_pool_made(NEXT(reapMemdup)(reap, bytes, n), *reap, n, CALLER);
}

static char *text(char *made, void **reap, const void *caller)
{
    return watch_pool_made(made, *reap, made ? strlen(made) + 1 : 0, caller);
}

char *reapStrdup(void **reap, const char *s)
{
    return watch_enter() ? text(NEXT(reapStrdup)(reap, s), reap, CALLER) : NEXT(reapStrdup)(reap, s);
}

char *reapStrndup(void **reap, const char *s, size_t n)
{
    return watch_enter() ? text(NEXT(reapStrndup)(reap, s, n), reap, CALLER) : NEXT(reapStrndup)(reap, s, n);
}

char *reapVprintf(void **reap, const char *format, va_list args)
{
    if (!watch_enter()) return NEXT(reapVprintf)(reap, format, args);
    return text(NEXT(reapVprintf)(reap, format, args), reap, CALLER);
}

char *reapPrintf(void **reap, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool entered = watch_enter();
    char *made = NEXT(reapVprintf)(reap, format, args);
    va_end(args);
    return entered ? text(made, reap, CALLER) : made;
}

void reapFree(void **reap, void *object)
{
    bool entered = watch_enter();
    if (entered) watch_free(object);
    NEXT(reapFree)(reap, object);
    if (entered) watch_leave();
}

int reapFreeAny(void *object)
{
    void *owner;
    bool entered = watch_enter();
    if (entered && NEXT(reapOf)(object, &owner) == 0) watch_free(object); /* what is no reap's stays */
    int status = NEXT(reapFreeAny)(object);
    if (entered) watch_leave();
    return status;
}
