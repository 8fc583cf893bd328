/* SPDX-License-Identifier: Apache-2.0 */
/* text: a text that grows, in memory of malloc's, since it is made while all pools are looked at.
 *
 * A text that could not grow is `failed`, and later additions do nothing; who uses it looks once, at the end.
 */
#ifndef MOD_REAP_TEXT_H
#define MOD_REAP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *data; /* ends with a zero, once something was added */
    size_t length, room;
    bool failed;
};

void text_add(struct text *text, const char *bytes, size_t n);
void text_puts(struct text *text, const char *s);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In decimal: much quicker than text_printf, for the rows of trees. */
void text_number(struct text *text, uint64_t number);

/* Writes a number's digits, 20 at most, before `end`, and returns the first one's place. */
char *text_digits(char *end, uint64_t number);

/* The character at s, of UTF-8, and how many bytes it has. A byte that begins none is one of Latin-1. */
unsigned text_decode(const char *s, size_t *n);

/* A string in quotes of JSON, NULL as null. What is not ASCII, angle brackets and ampersands are escaped, so
 * that the result is valid wherever it is put. */
void text_json(struct text *text, const char *s);

/* A comma, the name, and the string. */
void text_json_field(struct text *text, const char *name, const char *s);

void text_free(struct text *text);

#endif
