/* SPDX-License-Identifier: Apache-2.0 */
/* check_topology.c: cores and caches of CPUs, as text and from files like the kernel's. */
#include "support/check_backend.h"

#include "base/bitmap.h"
#include "os/topology.h"

#include <sys/stat.h>

TEST(a_text_says_core_and_cache_of_each_cpu)
{
    topology_init("0.0:0.0:1.0:1.0:2.1:2.1:9.1:9.2,slack=3", false); /* as it stands in REAP_OPTIONS */
    static const unsigned cores[] = {0, 0, 1, 1, 2, 2, 9, 9}, caches[] = {0, 0, 0, 0, 1, 1, 1, 2};
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        ck_assert_uint_eq(topology_core(cpu), cores[cpu]);
        ck_assert_uint_eq(topology_cache(cpu), caches[cpu]);
    }
    ck_assert_uint_eq(topology_caches, 3);
    ck_assert_uint_eq(topology_core(8), 8); /* nothing is known of it */
    ck_assert_uint_eq(topology_cache(8), 0);
    ck_assert_uint_lt(topology_core(UINT32_MAX), TOPOLOGY_CPUS); /* not known */
    ck_assert_uint_eq(topology_cache(UINT32_MAX), 0);
}

TEST(a_text_may_have_all_cpus_and_no_more)
{
    static char text[(TOPOLOGY_CPUS + 1) * 8];
    size_t n = 0;
    for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS; cpu++)
        n += (size_t)sprintf(text + n, "%s%u.%u", cpu != 0 ? ":" : "", cpu / 2, cpu % TOPOLOGY_CACHES);
    ck_assert(options_topology(text, n, NULL));
    topology_init(text, false);
    ck_assert_uint_eq(topology_caches, TOPOLOGY_CACHES);
    for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS; cpu++) {
        ck_assert_uint_eq(topology_core(cpu), cpu / 2);
        ck_assert_uint_eq(topology_cache(cpu), cpu % TOPOLOGY_CACHES);
    }
    memcpy(text + n, ":0.0", 4);
    ck_assert(!options_topology(text, n + 4, NULL));
}

static char root[] = "/tmp/check_topology.XXXXXX";

static void make_directory(const char *path)
{
    if (mkdir(path, 0700) != 0) ck_assert_int_eq(errno, EEXIST);
}

/* Writes a list of the kernel's into "cpu<cpu>/<name>" and makes the directories on the way. */
static void write_list(unsigned cpu, const char *name, const char *list)
{
    char path[256];
    snprintf(path, sizeof path, "%s/cpu%u/%s", root, cpu, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        make_directory(path);
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%s\n", list);
    fclose(file);
}

static void write_cpu(unsigned cpu, const char *siblings, const char *first_cache, const char *last_cache)
{
    write_list(cpu, "topology/thread_siblings_list", siblings);
    write_list(cpu, "cache/index0/shared_cpu_list", first_cache);
    if (last_cache != NULL) write_list(cpu, "cache/index1/shared_cpu_list", last_cache);
}

static void start_tree(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
    topology_root = root;
}

static void remove_tree(void)
{
    char command[sizeof root + 16];
    snprintf(command, sizeof command, "rm -rf %s", root);
    if (system(command) != 0) fprintf(stderr, "%s is left\n", root);
}

static struct topology_cpus cpus_below(unsigned end)
{
    struct topology_cpus cpus = {{0}};
    for (unsigned cpu = 0; cpu < end; cpu++) bitmap_set(cpus.bits, cpu);
    return cpus;
}

/* Two packages of two cores of two threads, numbered as Linux does: siblings are four apart. */
static void write_two_packages(void)
{
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        char siblings[8];
        snprintf(siblings, sizeof siblings, "%u,%u", cpu % 4, cpu % 4 + 4);
        write_cpu(cpu, siblings, siblings, cpu % 4 < 2 ? "0-1,4-5" : "2-3,6-7");
    }
}

TEST(caches_and_siblings_are_read)
{
    start_tree();
    write_two_packages();
    struct topology_cpus all = cpus_below(8);
    topology_read_cores(&all);
    topology_use_caches(topology_read_caches(&all));
    ck_assert_uint_eq(topology_caches, 2);
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        ck_assert_uint_eq(topology_core(cpu), cpu % 4);
        ck_assert_uint_eq(topology_cache(cpu), cpu % 4 / 2);
    }
    remove_tree();
}

TEST(a_process_on_one_package_has_one_cache)
{
    start_tree();
    write_two_packages();
    struct topology_cpus some = {{0xcc}}; /* 2, 3, 6, 7 */
    topology_use_caches(topology_read_caches(&some));
    ck_assert_uint_eq(topology_caches, 1);
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        ck_assert_uint_eq(topology_cache(cpu), 0);
        ck_assert_uint_eq(topology_core(cpu), cpu); /* not asked for */
    }
    remove_tree();
}

TEST(caches_of_one_cpu_are_none)
{
    start_tree();
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        char itself[8];
        snprintf(itself, sizeof itself, "%u", cpu);
        write_cpu(cpu, itself, itself, NULL);
    }
    struct topology_cpus all = cpus_below(4);
    topology_read_cores(&all);
    topology_use_caches(topology_read_caches(&all));
    ck_assert_uint_eq(topology_caches, 1);
    for (unsigned cpu = 0; cpu < 4; cpu++) ck_assert_uint_eq(topology_cache(cpu), 0);
    remove_tree();
}

/* Files that are not there, empty, or say something else: one cache, each CPU a core, and no more harm. */
TEST(odd_files_do_no_harm)
{
    static const char *const odd[] = {"",  "x", "-", "3-1", "0-99999", "4096", "1,2,", "99999999999999999999",
                                      "0-"};
    start_tree();
    struct topology_cpus all = cpus_below(4);
    errno = 7;
    topology_read_cores(&all);
    topology_use_caches(topology_read_caches(&all));
    ck_assert_uint_eq(topology_caches, 1);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        write_cpu(0, odd[i], odd[i], NULL);
        topology_read_cores(&all);
        topology_use_caches(topology_read_caches(&all));
        ck_assert_msg(topology_caches == 1, "%s", odd[i]);
        ck_assert_msg(topology_core(0) == 0, "%s", odd[i]);
    }
    remove_tree();
}

TEST(what_is_given_is_not_looked_for)
{
    start_tree();
    write_two_packages();
    topology_init("0.0", true);
    topology_find_caches();
    ck_assert_uint_eq(topology_caches, 1);
    ck_assert_uint_eq(topology_core(4), 4);
    remove_tree();
}

TEST(this_machine_is_read)
{
    errno = 7;
    topology_init(NULL, true);
    topology_find_caches();
    ck_assert_int_eq(errno, 7);
    ck_assert_uint_ge(topology_caches, 1);
    ck_assert_uint_le(topology_caches, TOPOLOGY_CACHES);
    for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS; cpu++) {
        ck_assert_uint_lt(topology_core(cpu), TOPOLOGY_CPUS);
        ck_assert_uint_lt(topology_cache(cpu), topology_caches);
    }
}

int main(void) { return run_tests((struct suite){0}); }
