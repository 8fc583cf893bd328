/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sanitizer.h"

#include "base/base.h"

void __asan_poison_memory_region(const volatile void *at, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *at, size_t size) __attribute__((weak));
void __asan_describe_address(void *at) __attribute__((weak));

static bool has_asan(void) { return __asan_unpoison_memory_region != NULL; }

#ifdef REAP_VALGRIND
#include <valgrind/memcheck.h>
#else /* without its header: requests that nobody answers */
#define VALGRIND_MALLOCLIKE_BLOCK(at, size, redzone, zeroed) ((void)(at), (void)(size))
#define VALGRIND_FREELIKE_BLOCK(at, redzone) ((void)(at))
#define VALGRIND_MAKE_MEM_DEFINED(at, size) ((void)(at), (void)(size), 0)
#define VALGRIND_MAKE_MEM_UNDEFINED(at, size) ((void)(at), (void)(size), 0)
#define VALGRIND_MAKE_MEM_NOACCESS(at, size) ((void)(at), (void)(size), 0)
#define VALGRIND_CHECK_MEM_IS_ADDRESSABLE(at, size) ((void)(at), (void)(size), 0)
#endif

/* Returns true if Memcheck runs. It answers such a request with a number other than 0. Other tools, such as
 * callgrind, answer 0, and are to observe the library as it runs without tools. */
static bool has_memcheck(void)
{
    char probe = 0;
    return VALGRIND_MAKE_MEM_DEFINED(&probe, sizeof probe) != 0;
}

bool sanitizer_running(void) { return has_asan() || has_memcheck(); }

void sanitizer_hide(void *at, size_t size)
{
    if (has_asan()) __asan_poison_memory_region(at, size);
    (void)VALGRIND_MAKE_MEM_NOACCESS(at, size);
}

void sanitizer_show(void *at, size_t size)
{
    if (has_asan()) __asan_unpoison_memory_region(at, size);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(at, size);
}

void sanitizer_use(void *at, size_t size) { (void)VALGRIND_MAKE_MEM_DEFINED(at, size); }

void sanitizer_alloc(void *block, size_t size)
{
    VALGRIND_MALLOCLIKE_BLOCK(block, size, 0, 0);
    if (has_asan()) __asan_unpoison_memory_region(block, size);
}

void sanitizer_free(void *block, size_t size)
{
    VALGRIND_FREELIKE_BLOCK(block, 0);
    sanitizer_hide(block, size);
}

/* Memcheck takes this check for an error, and describes the address, unless the program may touch it. */
void sanitizer_describe(const void *at)
{
    if (__asan_describe_address) __asan_describe_address((void *)(uintptr_t)at);
    (void)VALGRIND_CHECK_MEM_IS_ADDRESSABLE(at, 1);
}
