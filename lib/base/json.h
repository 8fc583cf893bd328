/* SPDX-License-Identifier: Apache-2.0 */
/* json.h: writes JSON piece by piece, without allocating.
 *
 *     json_put(&json, "{\"name\": ");
 *     json_string(&json, name, SIZE_MAX);
 *     json_put(&json, ", \"bytes\": %zu}", bytes);
 */
#ifndef JSON_H
#define JSON_H

#include "base/base.h"

/* Where the text goes. */
struct json {
    void (*write)(const char *text, size_t size, void *to);
    void *to;
};

/* Writes a piece as report_format does. It has less than 512 bytes. */
void json_put(const struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes at most `size` bytes of a text as a JSON string. What is not UTF-8 stands for Latin-1. */
void json_string(const struct json *json, const char *text, size_t size);

#endif
