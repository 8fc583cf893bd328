/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: the text of an answer, in a mapping of its own.
 *
 * So an answer changes nothing in the heap that it is about, and goes out after everything in it was looked
 * at: a slow client holds nothing up. Only the thread that writes adds to a text: exit() flushes the streams
 * of all threads, and a forked child those of its parent.
 */
#ifndef TEXT_H
#define TEXT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct text {
    char *bytes; /* NULL: no text */
    size_t size, room;
    bool is_cut;      /* there was no memory for the rest */
    bool has_writer;  /* a stream is on it, ... */
    pthread_t writer; /* ... of this thread */
};

/* A stream that adds to an empty text, until text_end. NULL: no memory. */
FILE *text_begin(struct text *text);
void text_end(struct text *text, FILE *stream);

void text_drop(struct text *text);

#endif
