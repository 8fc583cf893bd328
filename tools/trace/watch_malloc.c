/* SPDX-License-Identifier: Apache-2.0 */
/* watch_malloc.c: C's names of malloc's family, and libc's copies of strings, which libreap-malloc makes
 * itself. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

__thread unsigned watch_depth;

PUBLIC void free_sized(void *block, size_t size);
PUBLIC void free_aligned_sized(void *block, size_t alignment, size_t size);
PUBLIC void cfree(void *block);
PUBLIC char *__strdup(const char *text);
PUBLIC char *__strndup(const char *text, size_t size);

void *watch_moved(const void *old, void *object, size_t size, uint64_t before, const void *caller)
{
    if (!object && size == 0 && old) recorder_note(TRACE_FREE, old, NULL, 0, before, NULL);
    if (object == old && object) recorder_note(TRACE_RESIZE, object, NULL, size, recorder_now(), caller);
    if (object != old && object) {
        recorder_note(TRACE_LIFT, old, NULL, 0, before, NULL);
        recorder_note(TRACE_LAND, object, NULL, size, recorder_now(), caller);
    }
    watch_leave();
    return object;
}

PUBLIC void *malloc(size_t size)
{
    if (__builtin_expect(next_finding, 0)) return next_early(size);
    if (!watch_enter()) return NEXT(malloc)(size);
    return watch_made(NEXT(malloc)(size), size, CALLER);
}

PUBLIC void *calloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_expect(next_finding, 0))
        return __builtin_mul_overflow(n, size, &bytes) ? NULL : next_early(bytes);
    if (!watch_enter()) return NEXT(calloc)(n, size);
    return watch_made(NEXT(calloc)(n, size), n * size, CALLER);
}

/* An early block stays where it is; while free's own name is looked for, a block is one of the early ones, or
 * lost: dlsym frees what dlsym has made. */
PUBLIC void free(void *block)
{
    if (!block || next_is_early(block) || __builtin_expect(next_finding, 0)) return;
    bool entered = watch_enter();
    if (entered) watch_free(block);
    NEXT(free)(block);
    if (entered) watch_leave();
}

PUBLIC void cfree(void *block) { free(block); }

PUBLIC void free_sized(void *block, size_t size)
{
    (void)size;
    free(block);
}

PUBLIC void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    free(block);
}

static void *resize_early(void *old, size_t size)
{
    void *block = next_finding ? next_early(size) : malloc(size);
    size_t had = old ? next_early_size(old) : 0;
    if (block && old) memcpy(block, old, had < size ? had : size);
    return block;
}

static void *resize(void *old, size_t size, const void *caller)
{
    if (next_is_early(old) || __builtin_expect(next_finding, 0)) return resize_early(old, size);
    if (!watch_enter()) return NEXT(realloc)(old, size);
    if (!old) return watch_made(NEXT(realloc)(old, size), size, caller);
    uint64_t before = recorder_now();
    return watch_moved(old, NEXT(realloc)(old, size), size, before, caller);
}

PUBLIC void *realloc(void *old, size_t size) { return resize(old, size, CALLER); }

PUBLIC void *reallocarray(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (!__builtin_mul_overflow(n, size, &bytes)) return resize(old, bytes, CALLER);
    errno = ENOMEM;
    return NULL;
}

/* --- aligned --------------------------------------------------------------------------------------- */

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
    if (!watch_enter()) return NEXT(aligned_alloc)(alignment, size);
    return watch_made(NEXT(aligned_alloc)(alignment, size), size, CALLER);
}

PUBLIC void *memalign(size_t alignment, size_t size)
{
    if (!watch_enter()) return NEXT(memalign)(alignment, size);
    return watch_made(NEXT(memalign)(alignment, size), size, CALLER);
}

PUBLIC int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!watch_enter()) return NEXT(posix_memalign)(block, alignment, size);
    int status = NEXT(posix_memalign)(block, alignment, size);
    watch_made(status == 0 ? *block : NULL, size, CALLER);
    return status;
}

PUBLIC void *valloc(size_t size)
{
    if (!watch_enter()) return NEXT(valloc)(size);
    return watch_made(NEXT(valloc)(size), size, CALLER);
}

PUBLIC void *pvalloc(size_t size)
{
    if (!watch_enter()) return NEXT(pvalloc)(size);
    return watch_made(NEXT(pvalloc)(size), size, CALLER);
}

/* --- copies ---------------------------------------------------------------------------------------- */

static char *copied(char *text, const void *caller)
{
    return watch_made(text, text ? strlen(text) + 1 : 0, caller);
}

PUBLIC char *strdup(const char *text)
{
    return watch_enter() ? copied(NEXT(strdup)(text), CALLER) : NEXT(strdup)(text);
}

PUBLIC char *__strdup(const char *text)
{
    return watch_enter() ? copied(NEXT(__strdup)(text), CALLER) : NEXT(__strdup)(text);
}

PUBLIC char *strndup(const char *text, size_t size)
{
    return watch_enter() ? copied(NEXT(strndup)(text, size), CALLER) : NEXT(strndup)(text, size);
}

PUBLIC char *__strndup(const char *text, size_t size)
{
    return watch_enter() ? copied(NEXT(__strndup)(text, size), CALLER) : NEXT(__strndup)(text, size);
}
