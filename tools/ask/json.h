/* SPDX-License-Identifier: Apache-2.0 */
/* json.h: texts of any bytes as JSON. */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdio.h>

/* Writes at most `size` bytes of a text as a JSON string. What is not UTF-8 stands for Latin-1. */
void json_string(FILE *out, const char *text, size_t size);

#endif
