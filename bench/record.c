/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded, writes down what a program asks of APR's pools, or of malloc: a line an event, to the descriptor
 * that RECORD names. condense.py makes the traces of trace_httpd.c and trace_perl.c of that, which the
 * benchmarks of pools replay; README.md has the commands.
 *
 *     c POOL PARENT    p POOL SIZE    x POOL (cleared)    d POOL    of pools, with RECORD_POOLS defined
 *     m OBJECT SIZE    r OLD OBJECT SIZE    f OBJECT                of malloc, without
 *
 * For programs of one thread. What apr_psprintf makes is written down as a string of its length.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char lines[1 << 16];
static size_t n_lines;
static int to = -2;

__attribute__((destructor)) static void flush(void)
{
    if (to > 0 && write(to, lines, n_lines) < 0) _exit(99);
    n_lines = 0;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list arguments;
    if (to == -2) to = getenv("RECORD") ? atoi(getenv("RECORD")) : -1;
    if (to < 0) return;
    if (n_lines > sizeof lines - 128) flush();
    va_start(arguments, format);
    n_lines += (size_t)vsnprintf(lines + n_lines, 128, format, arguments);
    va_end(arguments);
}

#ifdef RECORD_POOLS

#define REAL(type, name, parameters)                                                                         \
    static type(*real_call) parameters;                                                                      \
    if (!real_call) *(void **)&real_call = dlsym(RTLD_NEXT, name)

int apr_pool_create_ex(void **pool, void *parent, void *abort_function, void *allocator);
int apr_pool_create_ex(void **pool, void *parent, void *abort_function, void *allocator)
{
    REAL(int, "apr_pool_create_ex", (void **, void *, void *, void *));
    int status = real_call(pool, parent, abort_function, allocator);
    note("c %p %p\n", *pool, parent);
    return status;
}

void apr_pool_clear(void *pool);
void apr_pool_clear(void *pool)
{
    REAL(void, "apr_pool_clear", (void *));
    real_call(pool);
    note("x %p\n", pool);
}

void apr_pool_destroy(void *pool);
void apr_pool_destroy(void *pool)
{
    REAL(void, "apr_pool_destroy", (void *));
    real_call(pool);
    note("d %p\n", pool);
}

void *apr_palloc(void *pool, size_t size);
void *apr_palloc(void *pool, size_t size)
{
    REAL(void *, "apr_palloc", (void *, size_t));
    note("p %p %zu\n", pool, size);
    return real_call(pool, size);
}

char *apr_pvsprintf(void *pool, const char *format, va_list arguments);
char *apr_pvsprintf(void *pool, const char *format, va_list arguments)
{
    REAL(char *, "apr_pvsprintf", (void *, const char *, va_list));
    char *text = real_call(pool, format, arguments);
    note("p %p %zu\n", pool, strlen(text) + 1);
    return text;
}

#else

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

void *malloc(size_t size)
{
    void *object = __libc_malloc(size);
    note("m %p %zu\n", object, size);
    return object;
}

void *calloc(size_t n, size_t size)
{
    void *object = __libc_calloc(n, size);
    note("m %p %zu\n", object, n * size);
    return object;
}

void *realloc(void *old, size_t size)
{
    void *object = __libc_realloc(old, size);
    note("r %p %p %zu\n", old, object, size);
    return object;
}

void free(void *object)
{
    if (object) note("f %p\n", object);
    __libc_free(object);
}

#endif
