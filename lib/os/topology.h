/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h: which CPUs share a core, and which their last cache.
 *
 *     CPU      0    1    2    3    4    5    6    7
 *     core     0    0    1    1    2    2    3    3      SMT siblings have one core
 *     cache    0    0    0    0    1    1    1    1      the last level
 *
 * REAP_OPTIONS=topology= may give it (options_topology). Otherwise it is read from
 * /sys/devices/system/cpu, for the CPUs that the process may run on at that time. A CPU that nothing is
 * known of is a core of its own, with the first cache: this decides only how fast things are.
 *
 * Where threads run at once only one writes, and others may be reading: that is topology_find_caches. The
 * rest is written at start.
 */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include "base/options.h"

enum {
    TOPOLOGY_CPUS = OPTION_CPUS,     /* CPUs and cores have numbers below this */
    TOPOLOGY_CACHES = OPTION_CACHES, /* on a machine with more, some count as one */
};

extern HIDDEN unsigned topology_caches;

/* How many caches CPUs share, at least 1. It is 1 also where no two CPUs share one: a cache of one CPU is no
 * place to trade in. */
static inline unsigned topology_caches_now(void)
{
    return __atomic_load_n(&topology_caches, __ATOMIC_ACQUIRE);
}

/* At start: takes the given topology, which ends at a comma; or if there is none (NULL) the cores as the
 * kernel says, if they are wanted. Nothing here allocates. */
void topology_init(const char *given, bool want_cores);

/* Finds the caches as the kernel says, if none were given and this is the first call: how many there are, for
 * topology_use_caches; or 0. Files cost some 4 us each, which a process does not have to spend before there
 * are two in it who could trade. */
unsigned topology_find_caches(void);
void topology_use_caches(unsigned caches);

unsigned topology_core(unsigned cpu);
unsigned topology_cache(unsigned cpu); /* below topology_caches */

/* The same for any CPUs, and where it is read, which tests change. */
struct topology_cpus {
    uint64_t bits[TOPOLOGY_CPUS / 64];
};
void topology_read_cores(const struct topology_cpus *cpus);
void topology_read_caches(const struct topology_cpus *cpus);
extern HIDDEN const char *topology_root;

#endif
