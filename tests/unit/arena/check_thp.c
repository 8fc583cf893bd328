/* SPDX-License-Identifier: Apache-2.0 */
/* check_thp.c: what the kernel is told about huge pages, as it shows in /proc/self/smaps. */
#include "os/pages.h"
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/huge_pages.h"
#include "hoard/chunk_provider.h"

/* The library's clock of CPU time, by which it knows what a huge page takes. */
static long page_ns; /* each look at it is later by this */

static uint64_t cpu_clock(void)
{
    static uint64_t cpu_ns;
    return (cpu_ns += (uint64_t)page_ns) - (uint64_t)page_ns;
}
__attribute__((constructor)) static void set_clock(void) { pages_cpu_clock = cpu_clock; }

/* The VmFlags of the mapping that an address lies in. */
static void flags_of(const void *address, char *flags, size_t size)
{
    char line[512];
    bool here = false;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    ck_assert_ptr_nonnull(smaps);
    flags[0] = '\0';
    while (fgets(line, sizeof line, smaps) != NULL && flags[0] == '\0') {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)address >= from && (uintptr_t)address < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, size, "%s", line + 8);
    }
    fclose(smaps);
}

static bool has_flag(const void *address, const char *flag)
{
    char flags[512];
    flags_of(address, flags, sizeof flags);
    return strstr(flags, flag) != NULL;
}

static bool is_told_yes(const void *address) { return has_flag(address, " hg"); }

static bool is_told_no(const void *address) { return has_flag(address, " nh"); }

enum { SIZE = 1000, BLOCKS = 48000 }; /* 48 MB */

static void *blocks[BLOCKS];

static void setup(void)
{
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0) _exit(0); /* nothing to tell */
}

static void allocate_all(const char *thp)
{
    use_path(0, thp);
    for (unsigned i = 0; i < BLOCKS; i++) ck_assert_ptr_nonnull(blocks[i] = hoard_malloc(SIZE));
}

TEST(a_program_that_has_grown_gets_them_for_small_objects)
{
    allocate_all("purge_ms=0");
    ck_assert(is_told_no(blocks[0]));
    ck_assert(is_told_no(blocks[BLOCKS / 4]));
    ck_assert(is_told_yes(blocks[BLOCKS / 2]));
    void *last = blocks[BLOCKS - 1];
    ck_assert(is_told_yes(last));

    void *mapping = hoard_malloc(9 * MIB);
    ck_assert(!is_told_yes(mapping) && !is_told_no(mapping));
    void *spans[64]; /* more than are free in older arenas: none has or keeps huge pages */
    for (unsigned i = 0; i < 64; i++) {
        spans[i] = hoard_malloc(MIB);
        ck_assert(!is_told_yes(spans[i]));
    }
    for (unsigned i = 0; i < 64; i++) hoard_free(spans[i]);
    for (unsigned i = BLOCKS - 500; i < BLOCKS - 1; i++) hoard_free(blocks[i]);
    hoard_trim(0);
    ck_assert(!is_told_yes(last)); /* beside what has gone back */
    ck_assert(is_told_no(last));
}

TEST(chunks_of_reaps_have_arenas_without_them)
{
    enum { CHUNKS = 2000 };
    allocate_all(NULL);
    void *chunks[CHUNKS];
    unsigned huge_chunks = 0, small_blocks = 0; /* reading smaps takes its time */
    for (unsigned i = 0; i < CHUNKS; i++) {
        ck_assert_ptr_nonnull(chunks[i] = chunk_alloc(CHUNK_MIN, NULL, NULL));
        for (unsigned k = 0; k < 10; k++) blocks[i % 100] = hoard_malloc(SIZE);
        if (i % 20 != 0) continue;
        huge_chunks += !is_told_no(chunks[i]);
        small_blocks += !is_told_yes(blocks[i % 100]);
    }
    ck_assert_uint_eq(huge_chunks, 0);
    ck_assert_uint_eq(small_blocks, 0);
    ck_assert(is_told_yes(blocks[BLOCKS - 1]));
}

/* Of a class that has 20 blocks a superblock. */
TEST(a_class_has_them_from_its_ninth_superblock_on)
{
    enum { OTHER = 3000 };
    allocate_all(NULL);
    for (unsigned superblocks = 0; superblocks < 9;) {
        static const struct superblock *last;
        void *block = hoard_malloc(OTHER);
        if (superblock_of(block) == last) continue;
        last = superblock_of(block);
        superblocks++;
        ck_assert(superblocks < 9 ? is_told_no(block) : is_told_yes(block));
    }
}

/* Of so many arenas, one after the other, those with huge pages. After a slow one an arena has no more. */
static unsigned with_huge(unsigned arenas)
{
    static char pages[4 * MIB] __attribute__((aligned(2 * MIB)));
    unsigned with = 0;
    for (unsigned i = 0; i < arenas; i++) {
        if (!huge_pages_are_quick(1)) continue;
        with++;
        ck_assert(!huge_pages_touch(pages + SUPERBLOCK)); /* is not the first of its page */
        if (!huge_pages_touch(pages)) huge_pages_touch(pages + 2 * MIB);
    }
    return with;
}

/* The next are 4 without, then 16, 64, 256, 1024, and 1024 again. */
TEST(few_are_tried_while_they_come_slowly)
{
    page_ns = 900000;
    ck_assert_uint_eq(with_huge(100), 100);
    page_ns = 1100000;
    ck_assert_uint_eq(with_huge(1 + 4), 1);
    ck_assert_uint_eq(with_huge(1 + 16 + 1 + 64 + 1 + 256 + 1 + 1024), 4);
    ck_assert_uint_eq(with_huge(1 + 1024 + 1), 2);
    ck_assert(!huge_pages_are_quick(1000));
    ck_assert(!huge_pages_are_quick(1000)); /* the last 24 of 1024 */
    page_ns = 200000;
    ck_assert_uint_eq(with_huge(100), 100);
    page_ns = 1100000;
    ck_assert_uint_eq(with_huge(1 + 4 + 1), 2); /* from the start */
}

/* Blocks of n more arenas, and how many of these are told yes. */
static unsigned told_yes(unsigned n)
{
    static uintptr_t last;
    unsigned yes = 0;
    for (unsigned arenas = 0; arenas < n;) {
        const char *block = hoard_malloc(SIZE);
        ck_assert_ptr_nonnull(block);
        if ((uintptr_t)block / ARENA == last) continue;
        last = (uintptr_t)block / ARENA;
        arenas++;
        yes += is_told_yes(block);
    }
    return yes;
}

/* Arenas are made for one and for what follows. */
TEST(an_object_that_may_be_sparse_takes_them_from_its_own_arena)
{
    allocate_all(NULL);
    unsigned before_huge = 0;
    for (unsigned i = 0; i < 64; i++) {
        const char *object = hoard_malloc(MIB);
        ck_assert(!is_told_yes(object));
        before_huge += i >= 32 && is_told_yes(object + ARENA); /* all older arenas are used */
    }
    ck_assert_uint_ge(before_huge, 10);
    ck_assert(is_told_yes(blocks[BLOCKS - 1]));
}

/* Arenas are made up to 16 at a time: what is left of these loses them too. */
TEST(arenas_have_none_while_they_come_slowly)
{
    allocate_all(NULL);
    ck_assert_uint_eq(told_yes(4), 4);
    page_ns = 3000000;
    ck_assert_uint_le(told_yes(30), 4);
    page_ns = 0;
    told_yes(64);
    ck_assert_uint_eq(told_yes(4), 4);
}

TEST(always)
{
    allocate_all("thp=always");
    ck_assert(is_told_yes(blocks[0]) && is_told_yes(blocks[BLOCKS - 1]) &&
              is_told_yes(hoard_malloc(9 * MIB)));
}

TEST(never)
{
    allocate_all("thp=never");
    ck_assert(is_told_no(blocks[0]) && is_told_no(blocks[BLOCKS - 1]) && is_told_no(hoard_malloc(9 * MIB)));
}

TEST(nothing_is_said)
{
    allocate_all("thp=system");
    void *mapping = hoard_malloc(9 * MIB);
    ck_assert(!is_told_no(blocks[0]) && !is_told_no(blocks[BLOCKS - 1]) && !is_told_no(mapping));
    ck_assert(!is_told_yes(blocks[0]) && !is_told_yes(blocks[BLOCKS - 1]) && !is_told_yes(mapping));
}

int main(void) { return run_tests((struct suite){.begin = setup}); }
