/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_alloc.c: memory from a pool, strings included, and back.
 *
 * Objects are aligned to 16 where stock pools align to 8.
 */
#include "apr_pool.h"

#include <apr_lib.h>
#include <stdarg.h>
#include <string.h>

#include "reap.h"

#undef apr_pcalloc /* a macro in the header; programs older than that call the function */
#pragma GCC visibility push(default)
void *apr_pcalloc(apr_pool_t *pool, apr_size_t size);
#pragma GCC visibility pop

void *pool_exhausted(apr_abortfunc_t abort_fn)
{
    if (abort_fn) abort_fn(APR_ENOMEM);
    return NULL;
}

static __attribute__((noinline)) void *palloc_slow(apr_pool_t *pool, apr_size_t size)
{
    void *object = reapMalloc(&pool->reap, size);

    return object ? object : pool_exhausted(pool->abort_fn);
}

/* A second call, of reapMalloc, would cost half as much again, and even a mere jump there a third. */
void *apr_palloc(apr_pool_t *pool, apr_size_t size)
{
    void *object = reap_bump(&pool->reap, size);

    return __builtin_expect(object != NULL, 1) ? object : palloc_slow(pool, size);
}

void *apr_pcalloc(apr_pool_t *pool, apr_size_t size)
{
    void *object = reapCalloc(&pool->reap, 1, size);

    return object ? object : pool_exhausted(pool->abort_fn);
}

void apr_pfree(apr_pool_t *pool, void *object)
{
    reapFree(&pool->reap, object);
}

void *apr_prealloc(apr_pool_t *pool, void *object, apr_size_t size)
{
    void *moved = reapRealloc(&pool->reap, object, size);

    return moved ? moved : pool_exhausted(pool->abort_fn);
}

/* --- strings --------------------------------------------------------------------------------- */

/* Text goes to a buffer on the stack first, which holds nearly every string that httpd makes, and
 * moves to an object of the pool once it is longer. That object is doubled as needed and cut to
 * size at the end; while nothing else is allocated, both happen in place. */
struct text {
    apr_vformatter_buff_t out; /* first: the formatter knows only this part */
    apr_pool_t *pool;
    char *object; /* NULL while the text is in first */
    char first[512];
};

static char *text_start(struct text *text)
{
    return text->object ? text->object : text->first;
}

/* Called with the buffer full. One byte past endpos is kept for the terminator. */
static int text_grow(apr_vformatter_buff_t *out)
{
    struct text *text = (struct text *)out;
    size_t length = (size_t)(out->curpos - text_start(text));
    size_t size = 2 * (length + 1);
    char *grown = reapRealloc(&text->pool->reap, text->object, size);

    if (!grown) return -1;
    if (!text->object) memcpy(grown, text->first, length);
    text->object = grown;
    out->curpos = grown + length;
    out->endpos = grown + size - 1;
    return 0;
}

static char *text_finish(struct text *text)
{
    size_t size;
    char *result;

    *text->out.curpos++ = '\0';
    size = (size_t)(text->out.curpos - text_start(text));
    if (text->object) {
        result = reapRealloc(&text->pool->reap, text->object, size);
        return result ? result : text->object;
    }
    result = reapMalloc(&text->pool->reap, size);
    return result ? memcpy(result, text->first, size) : NULL;
}

char *apr_pvsprintf(apr_pool_t *pool, const char *format, va_list args)
{
    struct text text;
    char *result = NULL;

    text.pool = pool;
    text.object = NULL;
    text.out.curpos = text.first;
    text.out.endpos = text.first + sizeof text.first - 1;
    if (apr_vformatter(text_grow, &text.out, format, args) != -1)
        result = text_finish(&text);
    else
        reapFree(&pool->reap, text.object);
    return result ? result : pool_exhausted(pool->abort_fn);
}

char *apr_psprintf(apr_pool_t *pool, const char *format, ...)
{
    va_list args;
    char *result;

    va_start(args, format);
    result = apr_pvsprintf(pool, format, args);
    va_end(args);
    return result;
}
