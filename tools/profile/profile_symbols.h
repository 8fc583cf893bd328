/* SPDX-License-Identifier: Apache-2.0 */
/* profile_symbols.h: a copy of the profile that stands still, with names for its addresses.
 *
 * Threads: one report at a time, which profile.c sees to.
 */
#ifndef PROFILE_SYMBOLS_H
#define PROFILE_SYMBOLS_H

#include "profile_maps.h"
#include "profile_table.h"

struct report_stack {
    const uint32_t *places; /* numbers of places, innermost first */
    unsigned depth;
    const char *name; /* as profile_table.h has it */
    bool is_malloc;
    struct profile_sum all, live;
};

/* An address in a call; its function's name. */
struct report_place {
    uintptr_t address;
    const char *function;
    const char *file; /* the object's */
    bool is_known;    /* it is a function's name */
};

struct report {
    struct report_stack *stacks;
    struct report_place *places;
    uint32_t n_stacks, n_places;
};

/* Makes a report; names functions if the caller wants that, which takes most of the time. The memory is the
 * report's own. NULL: there is none, or no /proc. */
const struct report *report_make(bool names_functions);
void report_drop(void);

/* Writes the name of the function, or the object and the place in it, or the address. True: it is a
 * function's name. map: of the address; NULL: not known. */
bool symbol_write(uintptr_t address, const struct profile_map *map, char *text, size_t size);

/* Memory until the report is dropped; NULL: there is none. */
void *report_memory(size_t size);

#endif
