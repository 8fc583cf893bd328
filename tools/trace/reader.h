/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h: reads a trace (trace_format.h): its events in the order of their times.
 *
 * A reader believes nothing that a file says: sizes are within bounds, blocks have their sums, and what is
 * wrong ends a slot's events, or the file's, with a remark. What comes before it is read. Memory: an entry
 * for each block, 64 KiB for each slot at most, and the stacks.
 *
 *     struct reader *reader = reader_open("trace", stderr);
 *     for (struct reader_event event; reader_next(reader, &event);) ...
 *     reader_close(reader);                                          // writes remarks
 */
#ifndef READER_H
#define READER_H

#include <stdbool.h>
#include <stdio.h>

#include "trace_format.h"

#define READER_NO_STACK UINT32_MAX

struct reader_event {
    enum trace_kind kind;
    uint32_t slot;
    uint32_t stack; /* or READER_NO_STACK */
    uint64_t time;  /* nanoseconds since the trace began */
    uint64_t thread;
    uint64_t object, pool, size; /* 0: the kind has none */
};

struct reader;

/* Opens a trace, and what is beside it as FILE.live. Says in one line to `remarks` why it cannot, and is
 * NULL; later what is left out of it, and how the process ended. `remarks` stays open until reader_close. */
struct reader *reader_open(const char *path, FILE *remarks);
void reader_close(struct reader *reader);

/* The next event; false: there are no more. */
bool reader_next(struct reader *reader, struct reader_event *event);

/* The next event of a slot, whatever its time; not together with reader_next. */
bool reader_next_of(struct reader *reader, uint32_t slot, struct reader_event *event);

const struct trace_head *reader_head(const struct reader *reader);

/* The command line, arguments parted by blanks. */
const char *reader_command(const struct reader *reader);

/* The frames of a stack, innermost first; their number, 0 if there is no such stack. */
unsigned reader_stack(const struct reader *reader, uint32_t number, const uint64_t **frames);
uint32_t reader_stacks(const struct reader *reader);

/* Writes a frame as "MODULE+OFFSET". */
void reader_frame(const struct reader *reader, uint64_t at, char *text, size_t size);

/* The module of an address, and the offset in it; NULL: none is known. */
const char *reader_module(const struct reader *reader, uint64_t at, uint64_t *offset);

#endif
