/* SPDX-License-Identifier: Apache-2.0 */
/* varint.h: numbers of one to ten bytes, seven bits each, the lowest first; the top bit says that more
 * follow. A difference is folded, so that small ones are short on both sides of 0: 0, -1, 1, -2, ... */
#ifndef VARINT_H
#define VARINT_H

#include <stdbool.h>
#include <stdint.h>

enum { VARINT_MAX = 10 };

static inline char *varint_put(char *at, uint64_t n)
{
    for (; n >= 0x80; n >>= 7) *at++ = (char)(n | 0x80);
    *at++ = (char)n;
    return at;
}

/* False, and *at stays: there is no whole number before the end. */
static inline bool varint_get(const char **at, const char *end, uint64_t *n)
{
    *n = 0;
    for (const char *next = *at; next < end && next < *at + VARINT_MAX;) {
        *n |= (uint64_t)(*next & 0x7f) << (7 * (next - *at));
        if (!(*next++ & 0x80)) {
            *at = next;
            return true;
        }
    }
    return false;
}

/* Addresses are multiples of 16 mostly: then the difference loses four bits, and the lowest bit says so. */
static inline uint64_t varint_fold(uint64_t from, uint64_t to)
{
    int64_t apart = (int64_t)(to - from);
    bool is_round = apart % 16 == 0;
    if (is_round) apart /= 16;
    uint64_t folded = ((uint64_t)apart << 1) ^ (uint64_t)(apart >> 63);
    return folded << 1 | !is_round;
}

static inline uint64_t varint_unfold(uint64_t from, uint64_t folded)
{
    bool is_round = !(folded & 1);
    uint64_t half = folded >> 1;
    uint64_t apart = (half >> 1) ^ -(half & 1);
    return from + (is_round ? apart * 16 : apart);
}

#endif
