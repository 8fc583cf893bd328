/* SPDX-License-Identifier: Apache-2.0 */
/* pools_source.h: what the two compilers read (pools_gcc.h, pools_lcc.h): a program in a small C,
 * written before time is taken.
 *
 *     function    int NAME(int NAME, int NAME) block
 *     block       { int NAME, ...; statement ... }
 *     statement   block | if (expression) block | return expression; | NAME = expression;
 *     expression  numbers, names, + - * & and parentheses
 */
#ifndef POOLS_SOURCE_H
#define POOLS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

extern char *source;
extern size_t source_length;

/* Once; brief: a fiftieth of it. */
void source_write(bool brief);

#endif
