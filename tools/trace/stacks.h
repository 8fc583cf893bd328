/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h: numbers for stacks of calls. Who calls has a lock. */
#ifndef STACKS_H
#define STACKS_H

#include <stdbool.h>
#include <stddef.h>

#include "trace_format.h"

/* Frames from the one that returns to `caller` on, at most `depth` of them. Needs no lock. */
unsigned stacks_walk(const void *caller, uint64_t *frames, unsigned depth);

/* The number of a stack. *is_new: it had none before. UINT32_MAX: there is no memory for more. */
uint32_t stacks_number(const uint64_t *frames, unsigned n, bool *is_new);

/* Forgets all stacks: for a child's trace. */
void stacks_clear(void);

/* Writes "BASE END PATH" of each module of these frames that has not been told before; returns bytes. */
size_t stacks_modules(const uint64_t *frames, unsigned n, char *text, size_t size);

#endif
