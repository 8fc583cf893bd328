/* SPDX-License-Identifier: Apache-2.0 */
/* watch_apr.c: APR's pools, of libapr or of libreap-apr. No header of APR is needed: a pool is an address
 * here, and an abort function one, too. */
#include <stdarg.h>
#include <string.h>

#include "watch.h"

PUBLIC int apr_pool_create_ex(void **pool, void *parent, void *abort_function, void *allocator);
PUBLIC int apr_pool_create_unmanaged_ex(void **pool, void *abort_function, void *allocator);
PUBLIC void apr_pool_clear(void *pool);
PUBLIC void apr_pool_destroy(void *pool);
PUBLIC void *apr_palloc(void *pool, size_t size);
PUBLIC char *apr_pvsprintf(void *pool, const char *format, va_list args);
PUBLIC char *apr_psprintf(void *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
PUBLIC void apr_pfree(void *pool, void *object);

int apr_pool_create_ex(void **pool, void *parent, void *abort_function, void *allocator)
{
    bool entered = watch_enter();
    int status = NEXT(apr_pool_create_ex)(pool, parent, abort_function, allocator);
    if (entered) watch_leave();
    if (status == 0) watch_pool(TRACE_POOL, *pool, parent, 0);
    return status;
}

int apr_pool_create_unmanaged_ex(void **pool, void *abort_function, void *allocator)
{
    bool entered = watch_enter();
    int status = NEXT(apr_pool_create_unmanaged_ex)(pool, abort_function, allocator);
    if (entered) watch_leave();
    if (status == 0) watch_pool(TRACE_POOL, *pool, NULL, 0);
    return status;
}

void apr_pool_clear(void *pool)
{
    NEXT(apr_pool_clear)(pool);
    watch_pool(TRACE_POOL_CLEAR, pool, NULL, 0);
}

void apr_pool_destroy(void *pool)
{
    watch_pool(TRACE_POOL_ENDING, pool, NULL, 0);
    NEXT(apr_pool_destroy)(pool);
    watch_pool(TRACE_POOL_END, pool, NULL, 0);
}

void *apr_palloc(void *pool, size_t size)
{
    if (!watch_enter()) return NEXT(apr_palloc)(pool, size);
    return watch_pool_made(NEXT(apr_palloc)(pool, size), pool, size, CALLER);
}

static char *text(char *made, const void *pool, const void *caller)
{
    return watch_pool_made(made, pool, made ? strlen(made) + 1 : 0, caller);
}

char *apr_pvsprintf(void *pool, const char *format, va_list args)
{
    if (!watch_enter()) return NEXT(apr_pvsprintf)(pool, format, args);
    return text(NEXT(apr_pvsprintf)(pool, format, args), pool, CALLER);
}

char *apr_psprintf(void *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool entered = watch_enter();
    char *made = NEXT(apr_pvsprintf)(pool, format, args);
    va_end(args);
    return entered ? text(made, pool, CALLER) : made;
}

/* Without libreap-apr there is none, and the object stays until its pool ends. */
void apr_pfree(void *pool, void *object)
{
    void (*next)(void *, void *) = (void (*)(void *, void *))next_find("apr_pfree");
    if (!next) return;
    bool entered = watch_enter();
    if (entered) watch_free(object);
    next(pool, object);
    if (entered) watch_leave();
}
