/* SPDX-License-Identifier: Apache-2.0 */
/* misuse.h: a table of things that must not be done, each with the line that the library has to say.
 *
 *     PROGRAM --list       each case and the reaps that it is for
 *     PROGRAM --messages   what the lines say
 *     PROGRAM CASE         says on standard output what has to come on standard error, and does it
 */
#ifndef MISUSE_H
#define MISUSE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reap.h"

/* Which reaps new_reap makes: misuse.sh tries a case with each of its kinds. */
enum { ORDINARY = 1, SHARED = 2, PARTS = 4, ANY = ORDINARY | SHARED | PARTS };

enum { NONE = -1000000 }; /* no byte has changed */

struct misuse {
    const char *name;
    unsigned reaps;
    const char *options;   /* REAP_OPTIONS */
    void (*prepare)(void); /* sets `at`: the pointer in the line */
    void (*mistake)(void);
    const char *call, *what; /* the line: reap: CALL(AT): WHAT */

    /* Of an object that lies apart, its size, and the first changed byte's offset. */
    struct {
        bool is_apart;
        unsigned size;
        int offset;
        const char *owner;
    } apart;
};

/* The others' first seven members. */
#define CASE(...)                                                                                            \
    {                                                                                                        \
        __VA_ARGS__, { 0 }                                                                                   \
    }

/* To begin with, `reap` is a reap of the kind that is tried, and everything else is NULL. */
extern void *reap, *other, *at;
extern char *object;

void *new_reap(void);
void *new_shared_reap(void);

/* The line, where it is not as prepare leaves it. */
void expect(const char *call, const void *pointer, const char *what);

/* Objects of 100 bytes, and what becomes of them. */
void prepare_object(void);
void prepare_freed(void);
void prepare_cleared(void);
void prepare_destroyed(void);
void prepare_interior(void);

int misuse_main(int argc, char **argv, const struct misuse *cases, size_t count);
#define MISUSE_MAIN                                                                                          \
    int main(int argc, char **argv) { return misuse_main(argc, argv, cases, sizeof cases / sizeof *cases); }

#endif
