/* SPDX-License-Identifier: Apache-2.0 */
/* apr_pool_alloc.c: memory from a pool, strings included, and back.
 *
 * Objects are aligned to 16 where stock pools align to 8.
 */
#include "apr_pool.h"

#include <apr_lib.h>
#include <stdarg.h>

#undef apr_pcalloc /* a macro in the header; programs older than that call the function */
#pragma GCC visibility push(default)
void *apr_pcalloc(apr_pool_t *pool, apr_size_t size);
#pragma GCC visibility pop

void *pool_exhausted(apr_abortfunc_t abort_fn)
{
    if (abort_fn) abort_fn(APR_ENOMEM);
    return NULL;
}

void *pool_alloc_slow(apr_pool_t *pool, apr_size_t size)
{
    void *object = reapMalloc(&pool->reap, size);
    return object ? object : pool_exhausted(pool->abort_fn);
}

void *apr_palloc(apr_pool_t *pool, apr_size_t size) { return pool_alloc(pool, size); }

void *apr_pcalloc(apr_pool_t *pool, apr_size_t size)
{
    void *object = reapCalloc(&pool->reap, 1, size);
    return object ? object : pool_exhausted(pool->abort_fn);
}

void apr_pfree(apr_pool_t *pool, void *object)
{
    if (!object) return;
    pool_call = "apr_pfree";
    reapFree(&pool->reap, object);
    pool_call = NULL;
}

void *apr_prealloc(apr_pool_t *pool, void *object, apr_size_t size)
{
    pool_call = "apr_prealloc";
    void *moved = reapRealloc(&pool->reap, object, size);
    pool_call = NULL;
    return moved ? moved : pool_exhausted(pool->abort_fn);
}

/* libapr's copies would do, with two calls more for each string.
 * Where the pool has no room at hand. The other cases end with a jump to memcpy, and save no registers. */
static __attribute__((noinline)) void *copy_slow(apr_pool_t *pool, const void *from, apr_size_t length,
                                                 apr_size_t size)
{
    char *copy = pool_alloc_slow(pool, size);
    if (!copy) return NULL;
    if (size > length) copy[length] = '\0';
    return memcpy(copy, from, length);
}

void *apr_pmemdup(apr_pool_t *pool, const void *from, apr_size_t size)
{
    void *copy = from ? reap_bump(&pool->reap, size) : NULL;
    if (copy) return memcpy(copy, from, size);
    return from ? copy_slow(pool, from, size, size) : NULL;
}

char *apr_pstrdup(apr_pool_t *pool, const char *from)
{
    if (!from) return NULL;
    apr_size_t size = strlen(from) + 1;
    char *copy = reap_bump(&pool->reap, size);
    return copy ? memcpy(copy, from, size) : copy_slow(pool, from, size, size);
}

char *apr_pstrmemdup(apr_pool_t *pool, const char *from, apr_size_t length)
{
    char *copy = from ? reap_bump(&pool->reap, length + 1) : NULL;
    if (!copy) return from ? copy_slow(pool, from, length, length + 1) : NULL;
    copy[length] = '\0';
    return memcpy(copy, from, length);
}

/* Text is written where the next object of the pool will be, and becomes that object: nearly every string of
 * httpd fits there. Where that place is small, or there is none, text begins in a buffer on the stack. Once
 * it is longer it moves to an object that is doubled as needed and cut to size at the end, as a rule in
 * place. */
enum { LINE = 256 /* bytes that the place must have */ };

struct text {
    apr_vformatter_buff_t out; /* first: the formatter knows only this part */
    apr_pool_t *pool;
    char *start;
    bool is_object;
    char first[LINE];
};

static void text_begin(struct text *text, apr_pool_t *pool)
{
    const struct reap_front *front = pool->reap;
    size_t room = (size_t)(front->end - front->bump);
    text->pool = pool;
    text->start = room < LINE ? text->first : front->bump;
    text->is_object = false;
    text->out.curpos = text->start;
    text->out.endpos = text->start + (room < LINE ? LINE : room) - 1; /* the last byte is the terminator's */
}

/* Makes a text that lies on the stack an object. */
static __attribute__((noinline)) char *text_move(struct text *text, size_t size, size_t length)
{
    char *object = reapMalloc(&text->pool->reap, size);
    return object ? memcpy(object, text->first, length) : NULL;
}

/* Makes the text so far an object of size bytes: by a mere bump, where it is in place. */
static inline char *text_take(struct text *text, size_t size, size_t length)
{
    return text->start == text->first ? text_move(text, size, length) : reap_bump(&text->pool->reap, size);
}

/* Called with the buffer full. */
static int text_grow(apr_vformatter_buff_t *out)
{
    struct text *text = (struct text *)out;
    size_t length = (size_t)(out->curpos - text->start), size = 2 * (length + 1);
    char *grown = text->is_object ? text->start : text_take(text, length + 1, length);
    if (!grown) return -1;
    text->start = grown;
    text->is_object = true;
    grown = reapRealloc(&text->pool->reap, grown, size);
    if (!grown) return -1;
    text->start = grown;
    out->curpos = grown + length;
    out->endpos = grown + size - 1;
    return 0;
}

static char *text_finish(struct text *text)
{
    *text->out.curpos++ = '\0';
    size_t size = (size_t)(text->out.curpos - text->start);
    if (!text->is_object) return text_take(text, size, size);
    char *result = reapRealloc(&text->pool->reap, text->start, size);
    return result ? result : text->start;
}

char *apr_pvsprintf(apr_pool_t *pool, const char *format, va_list args)
{
    struct text text;
    char *result = NULL;
    text_begin(&text, pool);
    if (apr_vformatter(text_grow, &text.out, format, args) != -1)
        result = text_finish(&text);
    else if (text.is_object)
        reapFree(&pool->reap, text.start);
    return result ? result : pool_exhausted(pool->abort_fn);
}

char *apr_psprintf(apr_pool_t *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *result = apr_pvsprintf(pool, format, args);
    va_end(args);
    return result;
}
