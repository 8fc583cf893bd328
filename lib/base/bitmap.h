/* SPDX-License-Identifier: Apache-2.0 */
/* bitmap.h: bits in 64-bit words.
 *
 * A bitmap is an array of words; bit i is bit i % 64 of word i / 64. Ranges are half open. These functions do
 * not allocate or lock, and do not know what a bit stands for.
 */
#ifndef BITMAP_H
#define BITMAP_H

#include <stdbool.h>
#include <string.h>

#include "base/base.h"

static inline bool bitmap_get(const uint64_t *map, size_t i) { return map[i / 64] >> (i % 64) & 1; }

static inline void bitmap_set(uint64_t *map, size_t i) { map[i / 64] |= (uint64_t)1 << (i % 64); }

static inline void bitmap_clear(uint64_t *map, size_t i) { map[i / 64] &= ~((uint64_t)1 << (i % 64)); }

static inline void bitmap_clear_range(uint64_t *map, size_t from, size_t end)
{
    if (from >= end) return;
    size_t i = from / 64, last = (end - 1) / 64;
    uint64_t mask = ~(uint64_t)0 << (from % 64);
    for (; i < last; i++, mask = ~(uint64_t)0) map[i] &= ~mask;
    map[i] &= ~(mask & ~(uint64_t)0 >> (63 - (end - 1) % 64));
    ASSERT(!bitmap_get(map, from) && !bitmap_get(map, end - 1));
}

/* Returns the first set bit in [from, end), or end when there is none. */
static inline size_t bitmap_next(const uint64_t *map, size_t from, size_t end)
{
    if (from >= end) return end;
    size_t i = from / 64;
    uint64_t word = map[i] & ~(uint64_t)0 << (from % 64);
    while (word == 0) {
        if (++i * 64 >= end) return end;
        word = map[i];
    }
    size_t found = i * 64 + (size_t)__builtin_ctzll(word);
    ASSERT(found >= from);
    return found < end ? found : end;
}

/* Returns the last set bit in [begin, from], or SIZE_MAX when there is none. */
static inline size_t bitmap_previous(const uint64_t *map, size_t from, size_t begin)
{
    size_t i = from / 64;
    uint64_t word = map[i] & ~(uint64_t)0 >> (63 - from % 64);
    while (word == 0) {
        if (i * 64 <= begin) return SIZE_MAX;
        word = map[--i];
    }
    size_t found = i * 64 + 63 - (size_t)__builtin_clzll(word);
    ASSERT(found <= from);
    return found >= begin ? found : SIZE_MAX;
}

/* Fast paths change a bitmap by halves of words: the place of a bit in its half needs no masking. One load
 * of eight bytes, from any byte on, reads the 56 bits behind each bit of that byte. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bit i of a map is bit i % 32 of half i / 32");
typedef uint32_t bitmap_half __attribute__((may_alias));

/* Two steps of a free. Each is one instruction on x86-64, where compilers take two or three: for the carry
 * flag has the bit to be tested, and no sign is to be extended. */
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)

static inline bool bitmap_half_test_and_clear(uint32_t *half, size_t i)
{
    bool bit;
    __asm__("btrl %k2, %0" : "+r"(*half), "=@ccc"(bit) : "r"(i));
    return bit;
}

/* The first bit that is set; one must be. */
static inline size_t bitmap_first(uint64_t bits)
{
    size_t i;
    __asm__("rep bsfq %1, %0" : "=r"(i) : "r"(bits) : "cc");
    return i;
}

#else

static inline bool bitmap_half_test_and_clear(uint32_t *half, size_t i)
{
    bool bit = *half >> i % 32 & 1;
    *half &= ~((uint32_t)1 << i % 32);
    return bit;
}

static inline size_t bitmap_first(uint64_t bits) { return (size_t)__builtin_ctzll(bits); }

#endif

#endif
