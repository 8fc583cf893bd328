/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h: numbers and words in text from outside: options, and files of the kernel.
 *
 * Text need not be terminated; it ends at `end`. The functions move *text behind what they read. They do not
 * allocate or depend on the locale. Threads: any.
 */
#ifndef PARSE_H
#define PARSE_H

#include <string.h>

#include "base/base.h"

/* Reads a decimal number at *text, and moves *text behind the digits that it read. false: there is no digit,
 * or the number is not below `limit`. */
static inline bool parse_number(const char **text, const char *end, size_t limit, size_t *number)
{
    const char *first = *text;
    size_t n = 0;
    ASSERT(first <= end);
    for (; *text < end && **text >= '0' && **text <= '9'; ++*text) {
        size_t digit = (size_t)(**text - '0');
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n) || n >= limit)
            return false;
    }
    *number = n;
    return *text != first;
}

static inline bool parse_character(const char **text, const char *end, char c)
{
    bool found = *text < end && **text == c;
    *text += found;
    return found;
}

static inline bool parse_is(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(text, word, size) == 0;
}

#endif
