/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: the options of REAP_OPTIONS, in one table.
 *
 * The first call that needs memory reads REAP_OPTIONS=name=value,name=value,... once. In setuid programs it
 * does not. A name or value that is not in the table in options.c gives one line on standard error and is
 * otherwise ignored; the rest of the list still counts.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "base/base.h"

/* In the order of their words in options.c. heap_policy.h explains the first ones. */
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
enum option_purge_thread { PURGE_THREAD_AUTO, PURGE_THREAD_NEVER, PURGE_THREAD_ALWAYS };
enum option_memory_limit { LIMIT_PURGE, LIMIT_REFUSE, LIMIT_IGNORE };

struct options {
    unsigned stats;       /* 1: report at exit */
    unsigned heaps;       /* enum option_heaps */
    unsigned dynamic;     /* N of heaps=dynamic:N: allocations until a thread gets the next heap */
    const char *topology; /* text for options_topology, up to the next comma; NULL: the kernel's topology */
    unsigned path;        /* enum option_path */
    unsigned lock;        /* enum lock_kind */
    unsigned empty_fraction; /* f, in eighths: a heap keeps at most f of its memory unused ... */
    unsigned slack;          /* K: ... beyond this many superblocks */
    unsigned purge_ms;       /* milliseconds that unused memory is kept before it goes back to the OS */
    unsigned purge_thread;   /* enum option_purge_thread: a thread of the library gives it back */
    unsigned thp;            /* enum option_thp */
    unsigned memory_limit;   /* enum option_memory_limit */
    unsigned bypass;         /* 1: each object of a reap is a block of the process's malloc */
    const char *ask;         /* an address for questions, up to the next comma; NULL: none */
    unsigned leaks;          /* 1: a line at exit for each reap that was never destroyed */
    unsigned names;          /* 1: mappings have names */
    unsigned harden;         /* 1: checks memory around objects, and freed memory; 2: guard pages too */
#ifdef REAP_DEBUG
    unsigned walk_steps; /* see ASSERT_WALK in base.h */
#endif
};

/* Bounds of topology=: numbers of CPUs and cores are below the first, of caches below the second. */
enum { OPTION_CPUS = 4096, OPTION_CACHES = 64 };

extern struct options options;

/* Sets `options` from the environment. To be called once. */
void options_read(void);

/* Parses one list into `to`; for tests and options_read. Returns the number of complaints written. */
unsigned options_parse(const char *list, struct options *to);

/* Reads a topology: core.cache of each CPU, in the order of their numbers, joined by colons, as in
 * "0.0:0.0:1.0:1.0" for two cores of two CPUs each and one cache. Calls `each` for each CPU, unless `each` is
 * NULL. Returns false where the text is not a topology. */
bool options_topology(const char *text, size_t size,
                      void (*each)(unsigned cpu, unsigned core, unsigned cache));

/* Writes "name=value" of option i into buffer; false when there is no such option. */
bool options_show(unsigned i, char *buffer, size_t size);

#endif
