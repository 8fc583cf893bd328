/* SPDX-License-Identifier: Apache-2.0 */
/* misuse.h: what the programs here share: each does one thing that must not be done, after saying on
 * standard output what the library has to say about it on standard error. */
#ifndef MISUSE_H
#define MISUSE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reap.h"

static inline void expect(const char *call, const void *pointer, const char *what)
{
    printf("reap: %s(0x%lx): %s\n", call, (unsigned long)pointer, what);
    fflush(stdout);
}

/* The same of an object that lies apart: what follows then, with offset the first changed byte's, or NONE. */
enum { NONE = -1000000 };
static inline void expect_apart(const char *call, const void *pointer, const char *what, unsigned long size,
                                long offset, const void *reap, const char *name)
{
    printf("reap: %s(0x%lx): %s; object of %lu bytes", call, (unsigned long)pointer, what, size);
    if (offset != NONE) printf(", first changed byte at offset %ld", offset);
    printf(", reap 0x%lx%s%s\n", (unsigned long)reap, *name ? " " : "", name);
    fflush(stdout);
}

/* Hides a pointer from the compiler, which would warn of what is done with it. */
static inline void *opaque(void *pointer)
{
    void *volatile hidden = pointer;
    return hidden;
}

/* Before the first call of the library, which reads them. */
static inline void use_options(const char *options) { setenv("REAP_OPTIONS", options, 1); }

static inline void *new_shared_reap(void)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED};
    return reapCreateWith(&reap, NULL, &options) == 0 ? reap : NULL;
}

static inline void *new_ordinary_reap(void)
{
    void *reap;
    reapCreate(&reap, NULL);
    return reap;
}

/* misuse.sh has this one shared as well, for the mistake is the same there. */
static inline int is_shared(void) { return getenv("MISUSE_SHARED") != NULL; }
static inline void *new_reap(void) { return is_shared() ? new_shared_reap() : new_ordinary_reap(); }

#endif
