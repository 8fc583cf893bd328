/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sanitizer.h"

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
#else /* without its header: requests that nobody answers */
#define VALGRIND_CREATE_MEMPOOL(pool, redzone, zeroed) ((void)(pool))
#define VALGRIND_DESTROY_MEMPOOL(pool) ((void)(pool))
#define VALGRIND_MEMPOOL_ALLOC(pool, at, size) ((void)(pool), (void)(at), (void)(size))
#define VALGRIND_MEMPOOL_FREE(pool, at) ((void)(pool), (void)(at))
#define VALGRIND_MEMPOOL_CHANGE(pool, from, to, size) ((void)(pool), (void)(to), (void)(size))
#define VALGRIND_MAKE_MEM_DEFINED(at, size) ((void)(at), (void)(size), 0)
#define VALGRIND_MAKE_MEM_UNDEFINED(at, size) ((void)(at), (void)(size), 0)
#define VALGRIND_MAKE_MEM_NOACCESS(at, size) ((void)(at), (void)(size), 0)
#define VALGRIND_CHECK_MEM_IS_ADDRESSABLE(at, size) ((void)(at), (void)(size), 0)
#define VALGRIND_GET_VBITS(at, bits, size) ((void)(at), (void)(bits), (void)(size), 0)
#endif

/* Returns true if Memcheck runs. It answers such a request with a number other than 0. Other tools, such as
 * callgrind, answer 0, and are to observe the library as it runs without tools. */
static bool has_memcheck(void)
{
    char probe = 0;
    return VALGRIND_MAKE_MEM_DEFINED(&probe, sizeof probe) != 0;
}

static void memcheck_hide(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_NOACCESS(at, size); }

static bool is_hidden(const char *at)
{
    char bits;
    return VALGRIND_GET_VBITS(at, &bits, 1) == 3;
}

/* --- both ------------------------------------------------------------------------------------ */

bool sanitizer_running(void) { return has_asan() || has_memcheck(); }

void sanitizer_pool_begin(void *pool) { VALGRIND_CREATE_MEMPOOL(pool, 0, 0); }

void sanitizer_pool_end(void *pool) { VALGRIND_DESTROY_MEMPOOL(pool); }

void sanitizer_hide(void *at, size_t size)
{
    poison(at, size);
    memcheck_hide(at, size);
}

void sanitizer_show(void *at, size_t size)
{
    unpoison(at, size);
    sanitizer_use(at, size);
}

void sanitizer_use(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_DEFINED(at, size); }

void sanitizer_alloc(void *pool, void *object, size_t size, bool zeroed)
{
    unpoison(object, size);
    if (pool) VALGRIND_MEMPOOL_ALLOC(pool, object, size);
    if (pool && zeroed) sanitizer_use(object, size);
    sanitizer_hide((char *)object + size, rounded(size) - size);
}

void sanitizer_free(void *pool, void *object, size_t size)
{
    if (!pool) return;
    VALGRIND_MEMPOOL_FREE(pool, object);
    poison(object, size);
}

void sanitizer_resize(void *pool, void *object, size_t from, size_t to)
{
    if (pool) VALGRIND_MEMPOOL_CHANGE(pool, object, object, to);
    if (pool && to > from) (void)VALGRIND_MAKE_MEM_UNDEFINED((char *)object + from, to - from);
    if (to < from) memcheck_hide((char *)object + to, from - to);
    unpoison(object, to);
    poison((char *)object + to, rounded(to > from ? to : from) - to);
    memcheck_hide((char *)object + to, rounded(to) - to);
}

/* Bytes that the program may touch already keep what Memcheck knows of them. An object that is wide enough is
 * left alone: a change costs Memcheck time in proportion to the number of objects. */
void sanitizer_widen(void *pool, void *object, size_t size)
{
    char *end = (char *)object + size;
    unpoison(object, size);
    if (!is_hidden(end - 1)) return;
    if (pool) VALGRIND_MEMPOOL_CHANGE(pool, object, object, size);
    for (char *at = end - GRAIN; at < end; at++)
        if (is_hidden(at)) (void)VALGRIND_MAKE_MEM_UNDEFINED(at, 1);
}

/* Memcheck takes this check for an error, and describes the address, unless the program may touch it. */
void sanitizer_describe(const void *at)
{
    if (__asan_describe_address) __asan_describe_address((void *)(uintptr_t)at);
    (void)VALGRIND_CHECK_MEM_IS_ADDRESSABLE(at, 1);
}
