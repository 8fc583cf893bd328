/* SPDX-License-Identifier: Apache-2.0 */
/* check_os.c: small files, pages, the processor, size classes. */
#include "support/check_backend.h"

#include "arena/arena.h"
#include "arena/pagemap.h"
#include "base/kernel.h"
#include "os/metadata.h"
#include "os/pages.h"
#include "os/program.h"
#include "os/rseq.h"

#include <gnu/libc-version.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

TEST(a_file_is_read_as_far_as_there_is_room)
{
    char text[16], little[4] = "xyz";
    ck_assert_uint_eq(kernel_read_file("/proc/sys/kernel/ostype", text, sizeof text), 6);
    ck_assert_str_eq(text, "Linux\n");
    ck_assert_uint_eq(kernel_read_file("/proc/sys/kernel/ostype", little, sizeof little), 3);
    ck_assert_str_eq(little, "Lin");
    ck_assert_uint_eq(kernel_read_file("/dev/null", text, sizeof text), 0);
    ck_assert_str_eq(text, "");
    errno = 0;
    ck_assert_uint_eq(kernel_read_file("/dev/null/none", little, sizeof little), 0);
    ck_assert_int_eq(errno, ENOTDIR);
    ck_assert_str_eq(little, "");
}

/* Those of a library go with it, and what is written to is none. */
TEST(constants_of_the_program_are_told_from_all_else)
{
    static const char constant[100] = "text";
    const char *library = gnu_get_libc_version();
    static char written[100] = "text";
    char local[100] = "text";
    program_find();
    ck_assert_uint_ge(program_left(constant), sizeof constant);
    ck_assert_uint_eq(program_left(constant) - 5, program_left(constant + 5));
    ck_assert_uint_eq(program_left(constant + program_left(constant)), 0);
    ck_assert_uint_eq(program_left(library), 0);
    ck_assert_uint_eq(program_left(written), 0);
    ck_assert_uint_eq(program_left(local), 0);
    ck_assert_uint_eq(program_left(NULL), 0);
}

TEST(mappings_are_aligned_and_zero)
{
    char *held[64];
    size_t sizes[64];
    unsigned n = 0;
    for (size_t alignment = PAGE; alignment <= 64 * MIB; alignment *= 4)
        for (size_t size = PAGE; size <= 8 * MIB; size *= 8) {
            char *p = pages_map(size, alignment);
            ck_assert_ptr_nonnull(p);
            ck_assert_uint_eq((uintptr_t)p % alignment, 0);
            ck_assert(all_bytes(p, size, 0));
            memset(p, 0x55, size);
            held[n] = p;
            sizes[n++] = size;
        }
    for (unsigned i = 0; i < n; i++) { /* none lies over another */
        ck_assert_int_eq(held[i][0], 0x55);
        ck_assert_int_eq(held[i][sizes[i] - 1], 0x55);
        pages_unmap(held[i], sizes[i]);
    }
    unsigned char resident;
    ck_assert_int_ne(mincore(held[0], PAGE, &resident), 0);
    ck_assert_int_eq(errno, ENOMEM);
}

TEST(what_cannot_be_mapped_is_null_and_enomem)
{
    static const struct {
        size_t size, alignment;
    } much[] = {{(size_t)1 << 48, PAGE},
                {SIZE_MAX - PAGE + 1, PAGE},
                {PAGE, (size_t)1 << 62},
                {(size_t)1 << PAGEMAP_ADDRESS_BITS, MIB}};
    for (size_t i = 0; i < sizeof much / sizeof much[0]; i++) {
        errno = 0;
        ck_assert_ptr_null(pages_map(much[i].size, much[i].alignment));
        ck_assert_int_eq(errno, ENOMEM);
    }
}

TEST(purged_memory_reads_as_zero)
{
    char *p = pages_map(16 * PAGE, PAGE);
    memset(p, 1, 16 * PAGE);
    errno = 99;
    ck_assert(pages_purge(p + PAGE, 4 * PAGE));
    ck_assert_int_eq(errno, 99);
    ck_assert(!all_bytes(p, PAGE, 0));
    ck_assert(all_bytes(p + PAGE, 4 * PAGE, 0));
    ck_assert_int_eq(p[5 * PAGE], 1);
    ck_assert(!pages_purge(p + 1, PAGE)); /* a refusal is told */
    ck_assert_int_eq(errno, 99);
}

TEST(moves_and_resizes_keep_contents)
{
    char *from = pages_map(4 * PAGE, PAGE), *to = pages_map(8 * PAGE, PAGE);
    memset(from, 7, 4 * PAGE);
    memset(to, 8, 8 * PAGE);
    ck_assert(pages_move(from, 4 * PAGE, to, 8 * PAGE));
    for (unsigned i = 0; i < 4 * PAGE; i++) ck_assert_int_eq(to[i], 7);
    ck_assert(all_bytes(to + 4 * PAGE, 4 * PAGE, 0));
    ck_assert(pages_resize(to, 8 * PAGE, 2 * PAGE));
    ck_assert_int_eq(to[2 * PAGE - 1], 7);

    char *wall = pages_map(2 * PAGE, PAGE);
    munmap(wall + PAGE, PAGE);
    ck_assert(pages_resize(wall, PAGE, 2 * PAGE)); /* just made free */
    char *next =
        mmap(wall + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    (void)next; /* there is something behind it, ours or not */
    errno = 99;
    ck_assert(!pages_resize(wall, 2 * PAGE, 3 * PAGE));
    ck_assert_int_eq(errno, 99);
}

TEST(what_is_lifted_leaves_zeros)
{
    char *from = pages_map(8 * PAGE, PAGE);
    memset(from, 7, 8 * PAGE);
    errno = 99;
    char *lifted = pages_lift(from + 2 * PAGE, 4 * PAGE);
    needs(lifted != NULL, "Linux before 5.7");
    ck_assert_int_eq(errno, 99);
    ck_assert(all_bytes(lifted, 4 * PAGE, 7) && all_bytes(from, 2 * PAGE, 7));
    ck_assert(all_bytes(from + 2 * PAGE, 4 * PAGE, 0) && all_bytes(from + 6 * PAGE, 2 * PAGE, 7));
    pages_unmap(lifted, 4 * PAGE);
    ck_assert_ptr_null(pages_lift(from + 1, PAGE)); /* a refusal is told */
    ck_assert_int_eq(errno, 99);
}

TEST(metadata_is_zero_aligned_and_apart)
{
    enum { N = 3000 };
    static unsigned char *all[N];
    for (unsigned i = 0; i < N; i++) {
        size_t size = i % 1000 == 999 ? 300 * KIB : 1 + i % 200;
        all[i] = metadata_alloc(size);
        ck_assert_ptr_nonnull(all[i]);
        ck_assert_uint_eq((uintptr_t)all[i] % 64, 0);
        ck_assert(all_bytes(all[i], size, 0));
        memset(all[i], (int)(i % 251 + 1), size);
    }
    for (unsigned i = 0; i < N; i++) {
        size_t size = i % 1000 == 999 ? 300 * KIB : 1 + i % 200;
        ck_assert_uint_eq(all[i][0], i % 251 + 1);
        ck_assert_uint_eq(all[i][size - 1], i % 251 + 1);
    }
}

TEST(the_clock_goes_on)
{
    uint64_t start = pages_clock(), now = start;
    for (uint64_t last = start; now < start + 20; last = now) {
        now = pages_clock();
        ck_assert_uint_ge(now, last);
    }
}

TEST(no_rseq_where_it_is_refused)
{
    rseq_init(false, true);
    ck_assert_uint_eq(cpu.ids, 0);
    ck_assert_str_eq(cpu.path, "locked");
    ck_assert_str_eq(cpu.reason, "asked for by REAP_OPTIONS");
}

/* A filter that a program installs for itself once it runs: against this command, where one is named, or all.
 */
static void forbid_membarrier(bool all, unsigned command)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 3),
                                 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
                                 BPF_JUMP(BPF_JMP | (all ? BPF_JGE : BPF_JEQ) | BPF_K, command, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/* The one that is wanted is that which restarts sections: without it alone, too. */
static void fence_without_membarrier(void *all)
{
    rseq_fence();
    forbid_membarrier(all != NULL, all != NULL ? 0 : MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
    fputs("forbidden\n", stderr);
    rseq_fence();
}

TEST(a_fence_that_is_forbidden_ends_the_program, .times = 2)
{
    rseq_init(false, false);
    needs(cpu.ids != 0, "no restartable sequences here");
    struct outcome said = run_child(fence_without_membarrier, _i == 0 ? &said : NULL);
    ck_assert(WIFSIGNALED(said.status) && WTERMSIG(said.status) == SIGABRT);
    ck_assert_uint_eq(lines_of(said.text), 2);
    ck_assert_ptr_nonnull(strstr(said.text, "forbidden\nreap: "));
    ck_assert_ptr_nonnull(strstr(said.text, "membarrier"));
}

TEST(the_allowed_cpus_are_counted)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    rseq_init(false, false);
    ck_assert_int_eq((int)cpu.count, CPU_COUNT(&set));
    int first = 0;
    while (!CPU_ISSET(first, &set)) first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
    rseq_init(false, false);
    ck_assert_uint_eq(cpu.count, 1);
}

/* A store happens only when the id and the old value are right. */
TEST(conditional_stores, .times = 2)
{
    rseq_init(_i != 0, false);
    needs(cpu.ids != 0, "no restartable sequences here");
    uint64_t word = 1;
    uint32_t other = IDS_MAX;
    ck_assert_int_eq(rseq_store(other, &word, 1, 2), RSEQ_MOVED);
    ck_assert_uint_eq(word, 1);
    unsigned done = 0;
    for (unsigned i = 0; i < 10000; i++) {
        uint32_t id = rseq_id();
        ck_assert_uint_lt(id, cpu.ids);
        enum rseq_result wrong = rseq_store(id, &word, word + 1, 0);
        ck_assert_int_ne(wrong, RSEQ_DONE);
        uint64_t before = word;
        enum rseq_result right = rseq_store(id, &word, before, before + 1);
        ck_assert_int_ne(right, RSEQ_CHANGED);
        ck_assert_uint_eq(word, before + (right == RSEQ_DONE));
        done += right == RSEQ_DONE;
    }
    ck_assert_uint_gt(done, 9000);
}

TEST(every_size_fits_its_class_and_no_smaller_one)
{
    sizeclass_init();
    for (size_t size = 0; size <= CLASS_SIZE_MAX; size++) {
        unsigned c = sizeclass_of(size);
        ck_assert_uint_ge(c, 1);
        ck_assert_uint_lt(c, CLASS_CHUNK);
        ck_assert_uint_ge(sizeclasses[c].size, size);
        ck_assert_uint_eq(sizeclasses[c].size % BLOCK_UNIT, 0);
        if (c > 1) ck_assert_uint_lt(sizeclasses[c - 1].size, size);
        unsigned at_least = size > 256 && size <= SUPERBLOCK / 32 ? 8 : 4; /* eight end at 2 KiB */
        if (size > 128 && size <= SUPERBLOCK / 8)
            ck_assert_uint_le(sizeclasses[c].size * at_least, size * (at_least + 1));
    }
}

TEST(capacity_and_carving_agree)
{
    sizeclass_init();
    for (unsigned c = 1; c < CLASSES; c++) {
        const struct sizeclass *k = &sizeclasses[c];
        if (k->size == 0) continue;
        unsigned step = sizeclass_is_wide(c) ? BLOCK_UNIT : k->size;
        ck_assert_uint_eq(sizeclass_step(k), step);
        ck_assert_uint_eq(k->capacity, k->slots * SUPERBLOCK / k->size);
        ck_assert(k->slots <= SUPERBLOCK_SLOTS && (k->slots & (k->slots - 1)) == 0);
        if (sizeclass_is_wide(c)) ck_assert_uint_le(k->capacity, k->slots * ARENA_STUBS);
        ck_assert_uint_ge(k->capacity, 2);
        unsigned blocks = 0; /* carving from 8 on, as long as the limit allows */
        for (uint64_t n = 8; n <= k->carve_limit; n += step) blocks++;
        ck_assert_uint_eq(blocks, k->capacity);
        for (uint64_t n = 0; n <= k->capacity; n++)
            ck_assert_uint_eq(n * 8 * k->capacity_inverse >> 32, n * 8 / k->capacity);
        ck_assert_uint_lt(k->carve_limit, 1 << 16);
        ck_assert_uint_eq((uint64_t)(k->carve_step + (1u << 16)), (uint64_t)step << 32);
    }
}

TEST(the_inverse_divides_exactly)
{
    sizeclass_init();
    for (unsigned c = 1; c < CLASSES; c++) {
        const struct sizeclass *k = &sizeclasses[c];
        uint32_t inverse = sizeclass_is_wide(c) ? sizeclass_wide_inverse[c - CLASS_WIDE] : k->inverse;
        uint32_t size = sizeclass_is_wide(c) ? k->size / LINE : k->size, wrong = 0;
        if (k->size == 0) continue;
        for (uint32_t n = 0; n < 1 << 16; n++) {
            uint64_t product = (uint64_t)n * inverse;
            wrong += ((uint32_t)product < inverse) != (n % size == 0) || product >> 32 != n / size;
            wrong += (n * k->inverse < k->inverse) != (n % sizeclass_step(k) == 0);
        }
        ck_assert_uint_eq(wrong, 0);
    }
}

TEST(aligned_classes)
{
    sizeclass_init();
    for (size_t alignment = 16; alignment <= 4 * SUPERBLOCK; alignment *= 2)
        for (size_t size = 0; size <= 3 * SUPERBLOCK; size += size < 600 ? 1 : 97) {
            unsigned c = sizeclass_aligned(alignment, size);
            bool possible = size <= CLASS_SIZE_MAX && alignment <= SUPERBLOCK;
            ck_assert_int_eq(c != 0, possible); /* 128 KiB serves all that can be served */
            if (c == 0) continue;
            ck_assert_uint_lt(c, CLASS_CHUNK);
            ck_assert_uint_ge(sizeclasses[c].size, size);
            ck_assert_uint_eq(sizeclasses[c].size % alignment, 0);
            for (unsigned less = 1; less < c; less++)
                ck_assert(sizeclasses[less].size < size || sizeclasses[less].size % alignment != 0);
        }
}

TEST(chunk_classes)
{
    sizeclass_init();
    for (size_t size = 0; size <= CLASS_CHUNK_MAX; size++) {
        unsigned c = sizeclass_of_chunk(size);
        ck_assert_uint_ge(c, CLASS_CHUNK);
        ck_assert_uint_lt(c, CLASSES);
        ck_assert_uint_ge(sizeclasses[c].size, size);
        ck_assert_uint_eq(SUPERBLOCK % sizeclasses[c].size, 0);
        if (c > CLASS_CHUNK) ck_assert_uint_lt(sizeclasses[c - 1].size, size);
    }
}

TEST(the_fast_table_is_closed_until_opened)
{
    sizeclass_init();
    for (unsigned i = 0; i <= CLASS_SMALL_MAX / BLOCK_UNIT; i++) ck_assert_uint_eq(sizeclass_fast[i], 0);
    sizeclass_open_fast();
    ck_assert_int_eq(memcmp(sizeclass_fast, sizeclass_by_units, sizeof sizeclass_fast), 0);
}

int main(void) { return run_tests((struct suite){0}); }
