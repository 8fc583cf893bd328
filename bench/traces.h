/* SPDX-License-Identifier: Apache-2.0 */
/* traces.h: what a real program did, for the replays of pools_trace.h: the traces, which condense.py wrote,
 * and a reader, which works before time is taken.
 */
#ifndef TRACES_H
#define TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const char trace_httpd[], trace_perl[];

struct event {
    char what; /* n for a new object, else as written */
    unsigned number;
    uint32_t size; /* of an object; of a pool the number of objects that it is told to expect */
};

struct trace {
    bool frees;
    unsigned n, objects, pools; /* the largest number is one less */
    struct event *events;
    unsigned *most;    /* objects of a pool at once, by its number */
    unsigned expected; /* by the root */
    size_t bytes;      /* alive at once */
};

/* A trace of such a text. */
void trace_read(struct trace *trace, const char *text);

#endif
