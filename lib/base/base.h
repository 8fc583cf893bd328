/* SPDX-License-Identifier: Apache-2.0 */
/* base.h: macros, assertions and small functions that all files use. */
#ifndef BASE_H
#define BASE_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
/* A value of which the compiler knows nothing, for where it knows too much: a parameter that a header
 * declares nonnull, a name that another definition may have. */
#define UNKNOWN(value)                                                                                       \
    __extension__({                                                                                          \
        __auto_type unknown_ = (value);                                                                      \
        __asm__("" : "+r"(unknown_));                                                                        \
        unknown_;                                                                                            \
    })

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define COLD __attribute__((cold, noinline))

/* For functions of some nanoseconds: else their time varies by 5 % with the length of the code before. */
#define ALIGNED __attribute__((aligned(64)))
/* Marks a symbol of the library itself: code addresses it directly, and not through the GOT. */
#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))

/* For a large table of which most processes touch little, or nothing. The linker puts these behind all other
 * variables (sparse.ld), which then lie together on a few pages. Of the tables that each process touches
 * those that it writes to all the time lie apart from those that it writes to once, which a forked child
 * shares with its parent. They are used at their start, or at their end: so they share pages with each other,
 * or with the other variables. In a debug build locks are not zero. */
#ifdef REAP_DEBUG
#define SPARSE_AT(place)
#else
#define SPARSE_AT(place) __attribute__((section(".bss.sparse" place)))
#endif
#define SPARSE SPARSE_AT("")
#define SPARSE_FIRST SPARSE_AT(".first")           /* used from its start, behind the other variables */
#define SPARSE_LIVE_END SPARSE_AT(".live_end")     /* its end lies before ... */
#define SPARSE_LIVE_START SPARSE_AT(".live_start") /* ... the start of this one */
#define SPARSE_ONCE_END SPARSE_AT(".once_end")     /* the same for what is written once, */
#define SPARSE_ONCE SPARSE_AT(".once")             /* with small tables between the two */
#define SPARSE_ONCE_START SPARSE_AT(".once_start")

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

/* The library refuses larger sizes with ENOMEM: no object may be larger (C17 6.5.6). */
#define SIZE_LIMIT ((size_t)PTRDIFF_MAX)

/* The answer of a function that has no memory to return. */
static inline void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* Assertions of a debug build (configure --enable-debug). Other builds compile them, but evaluate nothing and
 * have no code for them. An assertion that fails ends the process with a line on standard error: file, line,
 * function and text. Assertions may stand anywhere, also in fast paths and forked children.
 *
 *     ASSERT(x)              a check of a few instructions
 *     ASSERT_WALK(steps, x)  a check of about `steps` things: of a list, a bitmap, a heap
 *
 * A place in the code makes its walk as often as option walk_steps affords. So walks in a large heap cost no
 * more than walks in a small one. */
#ifdef REAP_DEBUG
_Noreturn HIDDEN void assert_failed(const char *file, unsigned line, const char *function, const char *text)
    __attribute__((cold));

/* Returns true if a place has been passed often enough for a walk of `steps`. `credit` is the place's own. */
HIDDEN bool assert_affords(_Atomic uint32_t *credit, size_t steps);

/* The steps that a place gains each time that execution comes to it: option walk_steps. */
extern HIDDEN unsigned assert_walk_steps;

#define ASSERT(x) (LIKELY(x) ? (void)0 : assert_failed(__FILE__, __LINE__, __func__, #x))
#define ASSERT_WALK(steps, x)                                                                                \
    do {                                                                                                     \
        static _Atomic uint32_t credit_;                                                                     \
        if (assert_affords(&credit_, (steps)) && UNLIKELY(!(x)))                                             \
            assert_failed(__FILE__, __LINE__, __func__, #x);                                                 \
    } while (0)
#else
#define ASSERT(x) ((void)(0 && (x)))
#define ASSERT_WALK(steps, x) ((void)(0 && (steps) && (x)))
#endif

static inline size_t align_up(size_t n, size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

static inline uintptr_t align_down(uintptr_t n, size_t alignment) { return n & ~(uintptr_t)(alignment - 1); }

static inline bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

#endif
