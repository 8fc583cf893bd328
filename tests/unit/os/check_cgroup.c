/* SPDX-License-Identifier: Apache-2.0 */
/* check_cgroup.c: limits of control groups, read below a directory that is made up, and how arenas keep to
 * one. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/large.h"
#include "os/cgroup.h"

#include <limits.h>
#include <sys/stat.h>

enum { FILES = 8 };

static const struct {
    const char *what;
    struct {
        const char *name, *text;
    } files[FILES]; /* under /sys/fs/cgroup but the first, which is /proc/self/cgroup */
    size_t memory;
    unsigned cpus;
} made_up[] = {
    {"nothing at all", {{NULL, NULL}}, SIZE_MAX, UINT_MAX},
    {"limits",
     {{"", "0::/system.slice/web.service\n"},
      {"system.slice/web.service/memory.max", "67108864\n"},
      {"system.slice/web.service/cpu.max", "150000 100000\n"}},
     67108864,
     2},
    {"no limits",
     {{"", "0::/a\n"}, {"a/memory.max", "max\n"}, {"a/cpu.max", "max 100000\n"}},
     SIZE_MAX,
     UINT_MAX},
    {"the least of all ancestors",
     {{"", "0::/a/b/c\n"},
      {"a/b/c/memory.max", "max\n"},
      {"a/b/memory.max", "3000000\n"},
      {"a/memory.max", "5000000\n"},
      {"a/memory.high", "2500000\n"},
      {"a/cpu.max", "300000 100000\n"},
      {"a/b/c/cpu.max", "400000 100000\n"}},
     2500000,
     3},
    {"in a container, seen from outside",
     {{"", "0::/docker/0123\n"}, {"memory.max", "1000000\n"}, {"cpu.max", "10000 100000\n"}},
     1000000,
     1},
    {"the root",
     {{"", "0::/\n"}, {"memory.max", "2000000\n"}, {"cpu.max", "max 100000\n"}},
     2000000,
     UINT_MAX},
    {"version 1 beside it does not count",
     {{"", "4:memory:/m\n3:cpu:/m\n0::/u\n"},
      {"memory/m/memory.limit_in_bytes", "20000000\n"},
      {"u/memory.max", "30000000\n"},
      {"cpu/m/cpu.cfs_quota_us", "100\n"},
      {"cpu/m/cpu.cfs_period_us", "100\n"}},
     30000000,
     UINT_MAX},
    {"nonsense",
     {{"", "::\nx\n0:\n0::/a\n:memory:\n"},
      {"a/memory.max", "many\n"},
      {"memory.max", "99999999999999999999999999\n"},
      {"a/cpu.max", "100000 0\n"}},
     SIZE_MAX,
     UINT_MAX},
};

enum { MADE_UP = sizeof made_up / sizeof made_up[0] };

static void write_file(const char *root, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s%s", root, *name ? "sys/fs/cgroup/" : "proc/self/cgroup", name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

TEST(limits_are_read, .times = MADE_UP)
{
    char root[] = "/tmp/reap-cgroup-XXXXXX", remove[100];
    ck_assert_ptr_nonnull(mkdtemp(root));
    for (unsigned i = 0; i < FILES && made_up[_i].files[i].name != NULL; i++)
        write_file(root, made_up[_i].files[i].name, made_up[_i].files[i].text);
    struct cgroup group = {0, 0};
    errno = 4321;
    cgroup_read(root, &group);
    int error = errno;
    snprintf(remove, sizeof remove, "rm -r '%s'", root);
    ck_assert_int_eq(system(remove), 0);
    ck_assert_msg(group.memory == made_up[_i].memory, "%s: memory %zu", made_up[_i].what, group.memory);
    ck_assert_msg(group.cpus == made_up[_i].cpus, "%s: cpus %u", made_up[_i].what, group.cpus);
    ck_assert_int_eq(error, 4321);
}

TEST(a_path_that_is_too_long_is_no_limit)
{
    char root[1200];
    memset(root, 'x', sizeof root - 1);
    root[sizeof root - 1] = '\0';
    struct cgroup group = {0, 0};
    cgroup_read(root, &group);
    ck_assert(group.memory == SIZE_MAX && group.cpus == UINT_MAX);
}

/* What is unused goes back before new memory is had that would come near the limit; below it stays. */
TEST(near_the_limit_unused_memory_goes_back_first, .times = PATHS)
{
    use_path(_i, "purge_ms=3600000");
    arena_limit(64 * MIB);
    void *spans[10];
    for (unsigned i = 0; i < 10; i++) spans[i] = hoard_malloc(3 * MIB);
    for (unsigned i = 0; i < 10; i++) hoard_free(spans[i]);
    size_t unused = held_bytes();
    ck_assert_uint_ge(unused, 30 * MIB);
    void *object = hoard_malloc(20 * MIB);
    ck_assert_uint_ge(held_bytes(), unused); /* at most 50 of 56: nothing has gone */
    void *mapping = hoard_malloc(34 * MIB);
    ck_assert_uint_lt(held_bytes(), 55 * MIB);
    hoard_free(object); /* unused, and in the way of the next one, which has a mapping */
    object = hoard_malloc(33 * MIB);
    ck_assert_uint_lt(held_bytes(), 68 * MIB);
    hoard_free(mapping);
    hoard_free(object);
    /* By default nothing is refused: much that is asked for is never touched. */
    ck_assert_ptr_nonnull(object = hoard_malloc(200 * MIB));
    hoard_free(object);
}

/* What one heap's blocks were is wanted for spans, and other CPUs have freed it. */
TEST(near_the_limit_other_heaps_give_what_is_unused, .times = PATHS)
{
    static void *blocks[40 * MIB / 512];
    enum { BLOCKS = sizeof blocks / sizeof blocks[0] };
    use_path(_i, "purge_ms=3600000");
    pin_to(0);
    hoard_free(hoard_malloc(1));
    arena_limit(64 * MIB);
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = hoard_malloc(512);
    pin_to(1);
    for (unsigned i = 0; i < BLOCKS; i++) hoard_free(blocks[i]);
    for (unsigned i = 0; i < 200; i++) ck_assert_ptr_nonnull(hoard_malloc(200000));
    ck_assert_uint_le(held_bytes(), 64 * MIB);
}

static unsigned fill(void **blocks, unsigned n, size_t size)
{
    unsigned i = 0;
    while (i < n && (blocks[i] = hoard_malloc(size)) != NULL) i++;
    return i;
}

/* With memory_limit=refuse: NULL and ENOMEM at seven eighths, and what is freed can be had again. */
TEST(past_the_limit_there_is_enomem_and_recovery, .times = PATHS)
{
    static void *blocks[60000];
    static const size_t sizes[] = {1000, 100000, 5 * MIB, 20000, 1000};
    use_path(_i, "memory_limit=refuse");
    hoard_free(hoard_malloc(1));
    arena_limit(48 * MIB);
    for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        errno = 0;
        unsigned n = fill(blocks, 60000, sizes[k]);
        ck_assert_uint_lt(n, 60000);
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_uint_le(held_bytes(), 42 * MIB);
        ck_assert_uint_ge(n * sizes[k], 30 * MIB);
        errno = 0;
        ck_assert_ptr_null(hoard_realloc(NULL, 43 * MIB));
        ck_assert_int_eq(errno, ENOMEM);
        for (unsigned i = 0; i < n; i++) hoard_free(blocks[i]);
    }
    void *mapping = hoard_malloc(33 * MIB);
    ck_assert_ptr_nonnull(mapping);
    ck_assert_ptr_null(hoard_realloc(mapping, 60 * MIB)); /* grown in place or moved: not past it either */
    ck_assert_ptr_nonnull(hoard_realloc(mapping, 40 * MIB));
}

int main(void) { return run_tests((struct suite){0}); }
