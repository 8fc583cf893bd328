/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h: which CPUs share a core, and which their last cache.
 *
 *     CPU      0    1    2    3    4    5    6    7
 *     core     0    0    1    1    2    2    3    3      SMT siblings have one core
 *     cache    0    0    0    0    1    1    1    1      the last level
 *
 * REAP_OPTIONS=topology= may give it (options_topology). Otherwise it is read from /sys/devices/system/cpu,
 * for the CPUs that the process may run on at that time. A CPU about which nothing is known is a core of its
 * own, with the first cache: that costs speed only.
 *
 * Threads: while several threads run, at most one writes (topology_find_caches), and others may read
 * meanwhile. The rest is written at start.
 */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "base/options.h"

enum {
    TOPOLOGY_CPUS = OPTION_CPUS,     /* numbers of CPUs and cores are below this */
    TOPOLOGY_CACHES = OPTION_CACHES, /* on a machine with more, several count as one */
};

extern HIDDEN unsigned topology_caches;

/* Returns the number of caches that CPUs share, at least 1. It is 1 also where no two CPUs share one: there
 * is nobody to trade with in a cache of one CPU. */
static inline unsigned topology_caches_now(void)
{
    return __atomic_load_n(&topology_caches, __ATOMIC_ACQUIRE);
}

/* At start: takes the given topology, up to a comma; NULL: reads the cores, if wanted. No allocation. */
void topology_init(const char *given, bool want_cores);

/* Reads the caches from the kernel, if none were given, at the first call. Returns their number, for
 * topology_use_caches, or 0. Each file costs some 4 us, which a process of one thread need not spend. */
unsigned topology_find_caches(void);
void topology_use_caches(unsigned caches);

unsigned topology_core(unsigned cpu);
unsigned topology_cache(unsigned cpu); /* below topology_caches */

/* For tests: these read the topology of any CPUs, below topology_root. */
struct topology_cpus {
    uint64_t bits[TOPOLOGY_CPUS / 64];
};
void topology_read_cores(const struct topology_cpus *cpus);
unsigned topology_read_caches(const struct topology_cpus *cpus); /* 0: not several that CPUs share */
extern HIDDEN const char *topology_root;

#endif
