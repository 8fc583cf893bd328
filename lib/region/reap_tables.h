/* SPDX-License-Identifier: Apache-2.0 */
/* reap_tables.h: the tables of heap mode.
 *
 * They are the free lists, by size (reap_free.h), and the state of flush and sweep. Fast paths read them
 * through reap->tables. All reaps in region mode share empty tables: so creating a reap need not clear its
 * own, and no fast path tests whether they are cleared.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_TABLES_H
#define REAP_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct reap_chunk;

enum {
    REAP_EXACT_LISTS = 32,                 /* free lists of one size each: 1 to 32 units */
    REAP_FREELISTS = REAP_EXACT_LISTS + 22 /* and two for each doubling, up to a whole chunk */
};

/* A gap on a free list, which has its link in its own memory. */
struct reap_block {
    struct reap_block *next;
    size_t units; /* only in gaps of more than REAP_EXACT_LISTS units */
};

/* The tables of heap mode. */
struct reap_tables {
    struct reap_block *freelists[REAP_FREELISTS]; /* the first gap of each size, or NULL */
    ptrdiff_t room;                               /* units that may still come onto lists before a flush */
};

#endif
