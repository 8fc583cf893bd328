/* SPDX-License-Identifier: Apache-2.0 */
/* uses.h: reads and writes of memory, from the lines of Valgrind's lackey --trace-mem=yes, or of libreap-uses
 * (uses_plugin.c), which has far fewer of them.
 *
 *     I  04001000,3        an instruction: not taken
 *     -L 1ffeffe7e8,8      a load; S is a store, M both ('-' stands for a blank here)
 *
 * A program that libreap-trace records stores to a slot's `used` once for each event: these stores are marks,
 * between which the trace's events lie. Whoever knows where the slots were, which is another place in each
 * run, tells marks from the rest. Uses of the same 8 bytes between two marks may be told once. A whole run is
 * read first, to a file without a name, for its trace is whole only then.
 */
#ifndef USES_H
#define USES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct uses_item {
    uint64_t address;
    bool is_mark; /* it may be one: a store of four bytes at the right place in a page */
};

struct uses;

/* Reads all lines. NULL, with a line on standard error: that cannot be, or there are none. */
struct uses *uses_read(const char *path);
bool uses_next(struct uses *uses, struct uses_item *item);
void uses_free(struct uses *uses);

#endif
