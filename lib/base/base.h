/* SPDX-License-Identifier: Apache-2.0 */
/* base.h: words everybody uses. */
#ifndef BASE_H
#define BASE_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define COLD __attribute__((cold, noinline))

/* Of what takes some nanoseconds: else it takes 5 % more or less with the length of what stands before it. */
#define ALIGNED __attribute__((aligned(64)))
/* Says of a declaration that the symbol is ours: addressed directly, not through the GOT. */
#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

/* Sizes above this are refused with ENOMEM: no object may be larger (C17 6.5.6). */
#define SIZE_LIMIT ((size_t)PTRDIFF_MAX)

/* Assertions of a debug build (configure --enable-debug). Other builds compile them, evaluate nothing and
 * have no code of them. A false one ends the process with a line on standard error: file, line, function and
 * text. They may stand anywhere, fast paths and forked children included.
 *
 *     ASSERT(x)              what takes a few instructions
 *     ASSERT_WALK(steps, x)  what looks at many things, about `steps`: a list, a bitmap, a heap
 *
 * A place in the code makes its walk as often as option walk_steps affords. So walks cost no more for a large
 * heap than for a small one. */
#ifdef REAP_DEBUG
_Noreturn HIDDEN void assert_failed(const char *file, unsigned line, const char *function, const char *text)
    __attribute__((cold));

/* Has a place come by so often that it may look at so many things? `credit` is the place's own. */
HIDDEN bool assert_affords(_Atomic uint32_t *credit, size_t steps);

/* Things that a place may look at for each time that it comes by: option walk_steps. */
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
