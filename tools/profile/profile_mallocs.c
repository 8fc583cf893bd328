/* SPDX-License-Identifier: Apache-2.0 */
/* profile_mallocs.c: malloc's family, as a program calls it while the profile is on.
 *
 * Each call that is not sampled ends in a jump to the real one, which so has the program's return address:
 * entered reaps need that (redirect.h), and a call costs three nanoseconds less.
 */
#define REAP_OPTIONAL
#include "hoard.h"
#include "profile_sample.h"

#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

typedef const void *nothrow_t;

static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_reallocarray)(void *, size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_hoard_calloc)(size_t, size_t);
static void *(*real_hoard_realloc)(void *, size_t);
static int (*real_hoard_posix_memalign)(void **, size_t, size_t);

/* An object of 0 bytes is one of one byte. */
static size_t window_of(size_t size) { return size + (size == 0); }

/* In a function that the program has called, or a jump from there. */
#define IS_SAMPLED(size)                                                                                     \
    (profile_counts(window_of(size)) && !profile_is_for_libc(__builtin_return_address(0)))

static __attribute__((noinline)) void *noted(void *object, size_t size)
{
    profile_note(object, size, window_of(size), malloc_usable_size);
    return object;
}

/* The same for what the core defines, whose blocks may be no malloc's. */
static size_t usable_in_core(void *object) { return hoard_usable_size(object); }
static __attribute__((noinline)) void *noted_in_core(void *object, size_t size)
{
    profile_note(object, size, window_of(size), usable_in_core);
    return object;
}

/* --- one size, and perhaps an alignment ------------------------------------------------------ */

#define SIZED(note, name, parameters, arguments)                                                             \
    static void *(*real_##name)parameters;                                                                   \
    static __attribute__((noinline)) void *slow_##name parameters                                            \
    {                                                                                                        \
        if (!IS_SAMPLED(size)) return real_##name arguments;                                                 \
        return note(real_##name arguments, size);                                                            \
    }                                                                                                        \
    static void *instead_##name parameters                                                                   \
    {                                                                                                        \
        return profile_passes(size) ? real_##name arguments : slow_##name arguments;                         \
    }

#define FREED(name, parameters, arguments)                                                                   \
    static void(*real_##name) parameters;                                                                    \
    static void instead_##name parameters                                                                    \
    {                                                                                                        \
        profile_forget(block);                                                                               \
        real_##name arguments;                                                                               \
    }

SIZED(noted, malloc, (size_t size), (size))
SIZED(noted, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
SIZED(noted, memalign, (size_t alignment, size_t size), (alignment, size))
SIZED(noted, valloc, (size_t size), (size))
SIZED(noted, pvalloc, (size_t size), (size))
SIZED(noted_in_core, hoard_malloc, (size_t size), (size))
SIZED(noted_in_core, hoard_aligned_alloc, (size_t alignment, size_t size), (alignment, size))
SIZED(noted_in_core, _Znwm, (size_t size), (size))
SIZED(noted_in_core, _Znam, (size_t size), (size))
SIZED(noted_in_core, _ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment))
SIZED(noted_in_core, _ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment))
SIZED(noted_in_core, _ZnwmRKSt9nothrow_t, (size_t size, nothrow_t nothrow), (size, nothrow))
SIZED(noted_in_core, _ZnamRKSt9nothrow_t, (size_t size, nothrow_t nothrow), (size, nothrow))
SIZED(noted_in_core, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, nothrow_t nothrow),
      (size, alignment, nothrow))
SIZED(noted_in_core, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, nothrow_t nothrow),
      (size, alignment, nothrow))

FREED(free, (void *block), (block))
FREED(cfree, (void *block), (block))
FREED(free_sized, (void *block, size_t size), (block, size))
FREED(free_aligned_sized, (void *block, size_t alignment, size_t size), (block, alignment, size))
FREED(hoard_free, (void *block), (block))
FREED(_ZdlPv, (void *block), (block))
FREED(_ZdaPv, (void *block), (block))
FREED(_ZdlPvm, (void *block, size_t size), (block, size))
FREED(_ZdaPvm, (void *block, size_t size), (block, size))
FREED(_ZdlPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
FREED(_ZdaPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
FREED(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t alignment), (block, size, alignment))
FREED(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t alignment), (block, size, alignment))
FREED(_ZdlPvRKSt9nothrow_t, (void *block, nothrow_t nothrow), (block, nothrow))
FREED(_ZdaPvRKSt9nothrow_t, (void *block, nothrow_t nothrow), (block, nothrow))
FREED(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, nothrow_t nothrow),
      (block, alignment, nothrow))
FREED(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, nothrow_t nothrow),
      (block, alignment, nothrow))

/* --- n objects of a size --------------------------------------------------------------------- */

/* A product that overflows counts as one byte: the call fails. */
static size_t product(size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? 1 : bytes;
}

static __attribute__((noinline)) void *slow_calloc(size_t n, size_t size)
{
    if (!IS_SAMPLED(product(n, size))) return real_calloc(n, size);
    return noted(real_calloc(n, size), product(n, size));
}

static void *instead_calloc(size_t n, size_t size)
{
    return profile_passes(product(n, size)) ? real_calloc(n, size) : slow_calloc(n, size);
}

static void *instead_hoard_calloc(size_t n, size_t size)
{
    if (!IS_SAMPLED(product(n, size))) return real_hoard_calloc(n, size);
    return noted_in_core(real_hoard_calloc(n, size), product(n, size));
}

static int instead_posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!IS_SAMPLED(size)) return real_posix_memalign(block, alignment, size);
    int error = real_posix_memalign(block, alignment, size);
    if (error == 0) noted(*block, size);
    return error;
}

static int instead_hoard_posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!IS_SAMPLED(size)) return real_hoard_posix_memalign(block, alignment, size);
    int error = real_hoard_posix_memalign(block, alignment, size);
    if (error == 0) noted_in_core(*block, size);
    return error;
}

/* --- resizing: a free, and an object of the new size ----------------------------------------- */

/* A sampled object is forgotten before: another thread may have its address at once. If the call fails, the
 * object stays without its sample. glibc's realloc of 0 bytes frees, and returns NULL. */
static __attribute__((noinline)) void *slow_realloc(void *block, size_t size)
{
    profile_forget(block);
    if (!IS_SAMPLED(size)) return real_realloc(block, size);
    return noted(real_realloc(block, size), size);
}

static void *instead_realloc(void *block, size_t size)
{
    bool passes = !profile_may_have(block) && profile_passes(size);
    return __builtin_expect(passes, 1) ? real_realloc(block, size) : slow_realloc(block, size);
}

static void *instead_hoard_realloc(void *block, size_t size)
{
    profile_forget(block);
    if (!IS_SAMPLED(size)) return real_hoard_realloc(block, size);
    return noted_in_core(real_hoard_realloc(block, size), size);
}

static void *instead_reallocarray(void *block, size_t n, size_t size)
{
    profile_forget(block);
    if (!IS_SAMPLED(product(n, size))) return real_reallocarray(block, n, size);
    return noted(real_reallocarray(block, n, size), product(n, size));
}

/* --- copies of strings, where they do not come to malloc ------------------------------------- */

#define COPIED(name, type, parameters, arguments, size)                                                      \
    static type *(*real_##name)parameters;                                                                   \
    static type *instead_##name parameters                                                                   \
    {                                                                                                        \
        if (!IS_SAMPLED(size)) return real_##name arguments;                                                 \
        return noted_in_core(real_##name arguments, size);                                                   \
    }

COPIED(strdup, char, (const char *text), (text), strlen(text) + 1)
COPIED(__strdup, char, (const char *text), (text), strlen(text) + 1)
COPIED(strndup, char, (const char *text, size_t most), (text, most), strnlen(text, most) + 1)
COPIED(__strndup, char, (const char *text, size_t most), (text, most), strnlen(text, most) + 1)
COPIED(wcsdup, wchar_t, (const wchar_t *text), (text), (wcslen(text) + 1) * sizeof *text)

/* The casts are ISO C's business only: POSIX has functions in pointers to void. */
#pragma GCC diagnostic ignored "-Wpedantic"
#define CALL(name, in_core)                                                                                  \
    {                                                                                                        \
#name, (void *)instead_##name, (void **)(void *)&real_##name, in_core                                \
    }
const struct profile_call profile_mallocs[] = {CALL(malloc, false),
                                               CALL(calloc, false),
                                               CALL(realloc, false),
                                               CALL(reallocarray, true),
                                               CALL(aligned_alloc, false),
                                               CALL(posix_memalign, false),
                                               CALL(memalign, false),
                                               CALL(valloc, false),
                                               CALL(pvalloc, false),
                                               CALL(free, false),
                                               CALL(cfree, true),
                                               CALL(free_sized, true),
                                               CALL(free_aligned_sized, true),
                                               CALL(hoard_malloc, true),
                                               CALL(hoard_calloc, true),
                                               CALL(hoard_realloc, true),
                                               CALL(hoard_aligned_alloc, true),
                                               CALL(hoard_posix_memalign, true),
                                               CALL(hoard_free, true),
                                               CALL(_Znwm, true),
                                               CALL(_Znam, true),
                                               CALL(_ZnwmSt11align_val_t, true),
                                               CALL(_ZnamSt11align_val_t, true),
                                               CALL(_ZnwmRKSt9nothrow_t, true),
                                               CALL(_ZnamRKSt9nothrow_t, true),
                                               CALL(_ZnwmSt11align_val_tRKSt9nothrow_t, true),
                                               CALL(_ZnamSt11align_val_tRKSt9nothrow_t, true),
                                               CALL(_ZdlPv, true),
                                               CALL(_ZdaPv, true),
                                               CALL(_ZdlPvm, true),
                                               CALL(_ZdaPvm, true),
                                               CALL(_ZdlPvSt11align_val_t, true),
                                               CALL(_ZdaPvSt11align_val_t, true),
                                               CALL(_ZdlPvmSt11align_val_t, true),
                                               CALL(_ZdaPvmSt11align_val_t, true),
                                               CALL(_ZdlPvRKSt9nothrow_t, true),
                                               CALL(_ZdaPvRKSt9nothrow_t, true),
                                               CALL(_ZdlPvSt11align_val_tRKSt9nothrow_t, true),
                                               CALL(_ZdaPvSt11align_val_tRKSt9nothrow_t, true),
                                               CALL(strdup, true),
                                               CALL(__strdup, true),
                                               CALL(strndup, true),
                                               CALL(__strndup, true),
                                               CALL(wcsdup, true),
                                               {NULL, NULL, NULL, false}};
