/* SPDX-License-Identifier: Apache-2.0 */
#include "os/topology.h"

#include "base/bitmap.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/report.h"

#include <string.h>

unsigned topology_caches = 1;
const char *topology_root = "/sys/devices/system/cpu";

/* These stay untouched zero pages where there is one cache and cores do not matter. */
static SPARSE uint16_t core_of[TOPOLOGY_CPUS]; /* core number plus one; 0: the CPU is a core of its own */
static SPARSE uint8_t cache_of[TOPOLOGY_CPUS];

unsigned topology_core(unsigned cpu)
{
    if (cpu >= TOPOLOGY_CPUS) return 0;
    return core_of[cpu] != 0 ? core_of[cpu] - 1u : cpu;
}

unsigned topology_cache(unsigned cpu)
{
    return topology_caches_now() > 1 && cpu < TOPOLOGY_CPUS ? cache_of[cpu] : 0;
}

static void note(unsigned cpu, unsigned core, unsigned cache)
{
    ASSERT(cpu < TOPOLOGY_CPUS && cache < TOPOLOGY_CACHES);
    core_of[cpu] = (uint16_t)(core + 1);
    cache_of[cpu] = (uint8_t)cache;
    if (cache >= topology_caches) topology_caches = cache + 1;
}

/* Adds the CPUs of a list such as "0-3,8-11", which is the kernel's format, to the set. */
static void parse_list(const char *text, const char *end, struct topology_cpus *cpus)
{
    size_t first, last;
    do {
        if (!parse_number(&text, end, TOPOLOGY_CPUS, &first)) return;
        last = first;
        if (parse_character(&text, end, '-') && !parse_number(&text, end, TOPOLOGY_CPUS, &last)) return;
        for (size_t cpu = first; cpu <= last; cpu++) bitmap_set(cpus->bits, cpu);
    } while (parse_character(&text, end, ','));
}

/* Reads the list in a file; false if there is none. A very long list is cut; no real machine has one. */
static bool read_list(const char *path, struct topology_cpus *cpus)
{
    char text[1024];
    size_t n = kernel_read_file(path, text, sizeof text);
    if (n == 0) return false;
    memset(cpus, 0, sizeof *cpus);
    parse_list(text, text + n, cpus);
    return true;
}

static bool read_siblings(unsigned cpu, struct topology_cpus *cpus)
{
    char path[128];
    report_format(path, sizeof path, "%s/cpu%u/topology/thread_siblings_list", topology_root, cpu);
    return read_list(path, cpus) && bitmap_get(cpus->bits, cpu);
}

/* Reads which CPUs share the last of a CPU's caches. The kernel lists its caches by level. */
static bool read_last_cache(unsigned cpu, struct topology_cpus *cpus)
{
    char path[128];
    unsigned index = 0;
    do report_format(path, sizeof path, "%s/cpu%u/cache/index%u/shared_cpu_list", topology_root, cpu, index);
    while (read_list(path, cpus) && ++index < 8);
    return index != 0 && bitmap_get(cpus->bits, cpu);
}

static unsigned next_of(const struct topology_cpus *cpus, unsigned from)
{
    ASSERT(from <= TOPOLOGY_CPUS);
    return (unsigned)bitmap_next(cpus->bits, from, TOPOLOGY_CPUS);
}

void topology_read_cores(const struct topology_cpus *allowed)
{
    struct topology_cpus siblings;
    for (unsigned cpu = 0; (cpu = next_of(allowed, cpu)) < TOPOLOGY_CPUS; cpu++)
        if (read_siblings(cpu, &siblings)) core_of[cpu] = (uint16_t)(next_of(&siblings, 0) + 1);
}

unsigned topology_read_caches(const struct topology_cpus *allowed)
{
    struct topology_cpus done = {{0}}, sharing;
    unsigned caches = 0, cpus = 0;
    for (unsigned cpu = 0; (cpu = next_of(allowed, cpu)) < TOPOLOGY_CPUS; cpu++, cpus++) {
        if (bitmap_get(done.bits, cpu)) continue;
        if (!read_last_cache(cpu, &sharing)) return 0;
        for (unsigned c = 0; (c = next_of(&sharing, c)) < TOPOLOGY_CPUS; c++) {
            bitmap_set(done.bits, c);
            if (caches != 0) cache_of[c] = (uint8_t)(caches % TOPOLOGY_CACHES);
        }
        caches++;
    }
    if (caches >= cpus) return 0;
    return caches < TOPOLOGY_CACHES ? caches : TOPOLOGY_CACHES;
}

void topology_use_caches(unsigned caches)
{
    if (caches != 0) __atomic_store_n(&topology_caches, caches, __ATOMIC_RELEASE);
}

static _Atomic bool caches_are_known; /* caches were given, or read already */

static bool allowed_cpus(struct topology_cpus *cpus)
{
    memset(cpus, 0, sizeof *cpus);
    return KERNEL(SYS_sched_getaffinity, 0, sizeof *cpus, cpus) > 0;
}

void topology_init(const char *given, bool want_cores)
{
    struct topology_cpus allowed;
    int saved = errno;
    caches_are_known = given != NULL;
    if (given != NULL)
        options_topology(given, strcspn(given, ","), note);
    else if (want_cores && allowed_cpus(&allowed))
        topology_read_cores(&allowed);
    errno = saved;
}

unsigned topology_find_caches(void)
{
    struct topology_cpus allowed;
    int saved = errno;
    unsigned caches = 0;
    if (!atomic_exchange(&caches_are_known, true) && allowed_cpus(&allowed))
        caches = topology_read_caches(&allowed);
    errno = saved;
    return caches;
}
