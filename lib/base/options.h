/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: what REAP_OPTIONS may say, in one table.
 *
 * REAP_OPTIONS=name=value,name=value,... is read once, by the first call that needs memory; it is
 * ignored in setuid programs. A name or value that is not in the table in options.c gives one line
 * on standard error and is otherwise ignored; the rest of the list still counts.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "base/base.h"

/* heap_policy.h has what they mean. */
enum option_heaps {
    HEAPS_CID,
    HEAPS_CPU,
    HEAPS_CORE,
    HEAPS_THREAD,
    HEAPS_DYNAMIC,
    HEAPS_ROUNDROBIN,
    HEAPS_SINGLE
};
enum option_path { PATH_AUTO, PATH_LOCKED };
enum option_thp { THP_GROWN, THP_SYSTEM, THP_NEVER, THP_ALWAYS };
enum option_memory_limit { LIMIT_PURGE, LIMIT_REFUSE, LIMIT_IGNORE };

struct options {
    unsigned stats;       /* 1: report at exit */
    const char *stats_file; /* where to, up to the next comma; NULL: standard error */
    unsigned heaps;       /* enum option_heaps */
    unsigned dynamic;     /* N of heaps=dynamic:N: allocations until a thread gets the next heap */
    const char *topology; /* as options_topology takes it, up to the next comma; NULL: as the kernel says */
    unsigned path;        /* enum option_path */
    unsigned lock;        /* enum lock_kind */
    unsigned empty_fraction; /* f, in eighths: a heap keeps at most f of its memory unused ... */
    unsigned slack;          /* K: ... beyond this many superblocks */
    unsigned purge_ms;       /* how long unused memory is kept before it goes back to the OS */
    unsigned purge_thread;   /* 1: a thread of ours gives it back */
    unsigned thp;            /* enum option_thp */
    unsigned memory_limit;   /* enum option_memory_limit */
    unsigned bypass;         /* 1: each object of a reap is one of the process's malloc */
    unsigned redzone;        /* bytes around each object of a reap that nobody may touch */
    const char *trace;       /* a file for lines on reaps; up to the next comma; NULL: none */
    unsigned leaks;          /* 1: a line for each reap that is there at exit */
    unsigned harden;         /* 1: these, and freed objects of reaps are looked through later */
#ifdef REAP_DEBUG
    unsigned walk_steps; /* see ASSERT_WALK in base.h */
#endif
};

/* CPUs and cores that topology= gives have numbers below the first, caches below the second. */
enum { OPTION_CPUS = 4096, OPTION_CACHES = 64 };

extern struct options options;

/* Reads the environment; later calls do nothing. */
void options_read(void);

/* Parses one list into `to`; for tests and options_read. The number of complaints written. */
unsigned options_parse(const char *list, struct options *to);

/* Reads a topology: core.cache of each CPU, in the order of their numbers, joined by colons, as in
 * "0.0:0.0:1.0:1.0" for two cores of two CPUs each and one cache. Calls `each`, unless it is NULL, for each
 * CPU. false where the text is none. */
bool options_topology(const char *text, size_t size,
                      void (*each)(unsigned cpu, unsigned core, unsigned cache));

/* Writes "name=value" of option i into buffer; false when there is no such option. */
bool options_show(unsigned i, char *buffer, size_t size);

#endif
