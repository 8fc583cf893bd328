/* SPDX-License-Identifier: Apache-2.0 */
/* base.h: words everybody uses. */
#ifndef BASE_H
#define BASE_H

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

static inline size_t align_up(size_t n, size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

static inline uintptr_t align_down(uintptr_t n, size_t alignment) { return n & ~(uintptr_t)(alignment - 1); }

static inline bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

#endif
