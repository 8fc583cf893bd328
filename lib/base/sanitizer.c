/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include "base/sanitizer.h"

#include <config.h>
#endif

#include "base/base.h"

enum { GRAIN = 16 }; /* bytes; sizes are rounded up to a multiple of it */

static size_t rounded(size_t size) { return size == 0 ? GRAIN : align_up(size, GRAIN); }

/* --- AddressSanitizer ------------------------------------------------------------------------ */

void __asan_poison_memory_region(const volatile void *at, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *at, size_t size) __attribute__((weak));
void __asan_describe_address(void *at) __attribute__((weak));

static bool has_asan(void) { return __asan_unpoison_memory_region != NULL; }

static void poison(void *at, size_t size)
{
    if (has_asan()) __asan_poison_memory_region(at, size);
}

static void unpoison(void *at, size_t size)
{
    if (has_asan()) __asan_unpoison_memory_region(at, size);
}

/* --- Memcheck -------------------------------------------------------------------------------- */

#ifdef REAP_VALGRIND
#include <valgrind/memcheck.h>

/* Returns true if Memcheck runs. It answers such a request with a number other than 0. Other tools, such as
 * callgrind, answer 0, and are to observe the library as it runs without tools. */
static bool has_memcheck(void)
{
    char probe = 0;
    return VALGRIND_MAKE_MEM_DEFINED(&probe, sizeof probe) != 0;
}

void sanitizer_pool_begin(void *pool) { VALGRIND_CREATE_MEMPOOL(pool, 0, 0); }

void sanitizer_pool_end(void *pool) { VALGRIND_DESTROY_MEMPOOL(pool); }

static void memcheck_alloc(void *pool, void *object, size_t size, bool zeroed)
{
    VALGRIND_MEMPOOL_ALLOC(pool, object, size);
    if (zeroed) (void)VALGRIND_MAKE_MEM_DEFINED(object, size);
}

static void memcheck_free(void *pool, void *object) { VALGRIND_MEMPOOL_FREE(pool, object); }

static void memcheck_resize(void *pool, void *object, size_t from, size_t to)
{
    VALGRIND_MEMPOOL_CHANGE(pool, object, object, to);
    if (to > from) (void)VALGRIND_MAKE_MEM_UNDEFINED((char *)object + from, to - from);
    if (to < from) (void)VALGRIND_MAKE_MEM_NOACCESS((char *)object + to, from - to);
}

static bool is_hidden(const char *at)
{
    char bits;
    return VALGRIND_GET_VBITS(at, &bits, 1) == 3;
}

/* Makes the rest of an object usable, but bytes that the program may touch already keep what Memcheck knows
 * of them. An object that is wide enough is left alone: a change costs Memcheck time in proportion to the
 * number of objects. */
static void memcheck_widen(void *pool, void *object, size_t size)
{
    char *end = (char *)object + size;
    if (!is_hidden(end - 1)) return;
    if (pool) VALGRIND_MEMPOOL_CHANGE(pool, object, object, size);
    for (char *at = end - GRAIN; at < end; at++)
        if (is_hidden(at)) (void)VALGRIND_MAKE_MEM_UNDEFINED(at, 1);
}

static void memcheck_hide(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_NOACCESS(at, size); }

static void memcheck_show(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_DEFINED(at, size); }

/* Memcheck takes this check for an error, and describes the address, unless the program may touch it. */
static void memcheck_describe(const void *at) { (void)VALGRIND_CHECK_MEM_IS_ADDRESSABLE(at, 1); }

#else

static bool has_memcheck(void) { return false; }
void sanitizer_pool_begin(void *pool) { (void)pool; }
void sanitizer_pool_end(void *pool) { (void)pool; }
static void memcheck_alloc(void *pool, void *object, size_t size, bool zeroed)
{
    (void)pool, (void)object, (void)size, (void)zeroed;
}
static void memcheck_free(void *pool, void *object) { (void)pool, (void)object; }
static void memcheck_resize(void *pool, void *object, size_t from, size_t to)
{
    (void)pool, (void)object, (void)from, (void)to;
}
static void memcheck_widen(void *pool, void *object, size_t size) { (void)pool, (void)object, (void)size; }
static void memcheck_hide(void *at, size_t size) { (void)at, (void)size; }
static void memcheck_show(void *at, size_t size) { (void)at, (void)size; }
static void memcheck_describe(const void *at) { (void)at; }

#endif

/* --- both ------------------------------------------------------------------------------------ */

bool sanitizer_running(void) { return has_asan() || has_memcheck(); }

void sanitizer_hide(void *at, size_t size)
{
    poison(at, size);
    memcheck_hide(at, size);
}

void sanitizer_show(void *at, size_t size)
{
    unpoison(at, size);
    memcheck_show(at, size);
}

void sanitizer_use(void *at, size_t size) { memcheck_show(at, size); }

void sanitizer_alloc(void *pool, void *object, size_t size, bool zeroed)
{
    unpoison(object, size);
    if (pool) memcheck_alloc(pool, object, size, zeroed);
    sanitizer_hide((char *)object + size, rounded(size) - size);
}

void sanitizer_free(void *pool, void *object, size_t size)
{
    if (!pool) return;
    memcheck_free(pool, object);
    poison(object, size);
}

void sanitizer_resize(void *pool, void *object, size_t from, size_t to)
{
    if (pool)
        memcheck_resize(pool, object, from, to);
    else if (to < from)
        memcheck_hide((char *)object + to, from - to);
    unpoison(object, to);
    poison((char *)object + to, rounded(to > from ? to : from) - to);
    memcheck_hide((char *)object + to, rounded(to) - to);
}

void sanitizer_widen(void *pool, void *object, size_t size)
{
    unpoison(object, size);
    memcheck_widen(pool, object, size);
}

void sanitizer_describe(const void *at)
{
    if (__asan_describe_address) __asan_describe_address((void *)(uintptr_t)at);
    memcheck_describe(at);
}
