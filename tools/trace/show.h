/* SPDX-License-Identifier: Apache-2.0 */
/* show.h: what reap-analyse says of a trace. */
#ifndef SHOW_H
#define SHOW_H

#include "figures.h"

struct shown {
    const struct figures *figures;
    const struct reader *reader;
    const char *path;
    uint32_t places; /* stacks, at most */
};

void show_text(const struct shown *shown, FILE *out);
void show_json(const struct shown *shown, FILE *out);

/* One file of HTML, which asks nothing of the network. */
void show_page(const struct shown *shown, FILE *out);

/* For bench/replay: of each object of the places with most drag a line "SERIAL ADDRESS LAST": it is the
 * SERIALth of the trace, and is used for the last time when LAST have begun. */
void show_early(const struct shown *shown, FILE *out);

/* The stacks with most drag, or, without last uses, with most bytes at their greatest: at most n of them that
 * have any, most first. Their numbers go to `numbers`; returns how many. */
uint32_t show_worst(const struct shown *shown, uint32_t *numbers, uint32_t n);

/* A stack's frames, at most `frames` of them, each with `before` and `after`. */
void show_stack(const struct shown *shown, uint32_t number, unsigned frames, const char *before,
                const char *after, FILE *out, void (*write)(const char *text, FILE *out));

/* "1.5 MiB". */
void show_bytes(uint64_t bytes, FILE *out);

#endif
