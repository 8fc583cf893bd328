/* SPDX-License-Identifier: Apache-2.0 */
/* use.h: what a program does with its objects, alike for all contestants: it writes to them, and reads them
 * before they die.
 *
 *     up to 128 bytes   the first word, one in the middle, and the last: so each cache line
 *     up to 4 KiB       a word of each cache line, and the last
 *     above             a word of each page, one in the middle, and the last
 *
 * Three words cost 2 ns where a loop over all of them costs 6, most of it a branch that random sizes make the
 * CPU guess wrong: the allocators would drown in that. What is read is summed; that sum is the same for
 * everybody, and whoever gives the same memory twice or loses what a resize has to keep has another one.
 */
#ifndef USE_H
#define USE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
enum {
    USE_SMALL = 128, USE_WHOLE = 4096, USE_LINE = 64,
    USE_PAGE = 4096 - USE_LINE, /* each page, not always at the same line: those would be in the same sets */
    USE_WORD = sizeof(uint64_t)
};
/* clang-format on */

static _Thread_local uint64_t use_sum, use_written;

static inline void use_set(char *at, uint64_t word) { memcpy(at, &word, sizeof word); }

static inline uint64_t use_get(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline size_t use_middle(size_t size) { return (size - USE_WORD) / 2 / USE_WORD * USE_WORD; }

/* Writes to an object of at least a word. Each gets another number. */
static inline void use_write(void *object_, size_t size)
{
    char *object = object_;
    size_t last = size - USE_WORD, stride = size > USE_WHOLE ? USE_PAGE : USE_LINE;
    uint64_t word = ++use_written;
    if (size > USE_SMALL)
        for (size_t at = stride; at < last; at += stride) use_set(object + at, word);
    use_set(object, word);
    use_set(object + use_middle(size), word);
    use_set(object + last, word);
}

/* Reads what was written. Words may overlap, and do so alike for all. */
static inline void use_read(const void *object_, size_t size)
{
    const char *object = object_;
    size_t last = size - USE_WORD, stride = size > USE_WHOLE ? USE_PAGE : USE_LINE;
    uint64_t sum = use_get(object) + use_get(object + use_middle(size)) + use_get(object + last);
    if (size > USE_SMALL)
        for (size_t at = stride; at < last; at += stride) sum += use_get(object + at);
    __asm__ volatile("" : : "r"(sum)); /* no compiler drops the reads */
    use_sum += sum;
}

/* The same with each byte. */
static inline void use_write_all(void *object_, size_t size)
{
    char *object = object_;
    uint64_t word = ++use_written;
    for (size_t at = 0; at < size - USE_WORD; at += USE_WORD) use_set(object + at, word);
    use_set(object + size - USE_WORD, word);
}

static inline void use_read_all(const void *object_, size_t size)
{
    const char *object = object_;
    uint64_t sum = use_get(object + size - USE_WORD);
    for (size_t at = 0; at < size - USE_WORD; at += USE_WORD) sum += use_get(object + at);
    __asm__ volatile("" : : "r"(sum));
    use_sum += sum;
}

#endif
