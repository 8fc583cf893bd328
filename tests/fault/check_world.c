/* SPDX-License-Identifier: Apache-2.0 */
/* check_world.c: what the world around a process may do to it: locked memory, limits, too many mappings,
 * no addresses any more, sandboxes that come late, ten thousand threads. Nothing crashes, hangs, or loses
 * contents; memory that is said to be zero is. No root is needed.
 */
#include "support/check_reap.h"
#include "support/resident.h"

#include "heap/heap.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

/* make check-world: all of it, and longer. */
static bool in_world(void) { return getenv("REAP_TEST_WORLD") != NULL; }

/* One line for each, also for one that cannot be here. */
static void in_child(const char *what, const char *path, void (*fn)(void *arg), void *arg)
{
    struct outcome said = run_child(fn, arg);
    bool skipped = WIFEXITED(said.status) && WEXITSTATUS(said.status) == SKIPPED;
    if (skipped) {
        note_skip(said.text, what);
        return;
    }
    printf("%s, %s%s\n", path, what, said.text);
    fflush(stdout);
    ck_assert_msg(said.status == 0, "status %x: %s", (unsigned)said.status, said.text);
}

static void skip(const char *why)
{
    fprintf(stderr, "%s", why);
    _exit(SKIPPED);
}

/* --- a bit of everything ------------------------------------------------------------------------------ */

enum { SLOTS = 300 };
struct work {
    uint64_t chance;
    unsigned char *blocks[SLOTS];
    size_t sizes[SLOTS];
    unsigned refused;
};

static bool is_whole(const unsigned char *at, size_t size, unsigned char value)
{
    return at[0] == value && at[size / 2] == value && at[size - 1] == value;
}

static NOINLINE void fill(unsigned char *at, size_t size, unsigned char value)
{
    at[0] = at[size / 2] = at[size - 1] = value;
    if (size > 2000) at[1000] = at[size - 1000] = value;
}

static void drop(struct work *work, unsigned i)
{
    unsigned char *at = work->blocks[i];
    if (!at) return;
    expect(is_whole(at, work->sizes[i], (unsigned char)i), "contents are lost");
    memset(at, 0xff, work->sizes[i] < 100000 ? work->sizes[i] : 100000); /* what must not be found as zero */
    work->blocks[i] = NULL;
    hoard_free(at);
}

static size_t any_size(struct work *work)
{
    unsigned kind = random_below(&work->chance, 100);
    if (kind == 0) return 1 + random_below(&work->chance, 6 << 20);
    return 1 + random_below(&work->chance, kind < 10 ? 300000 : 3000);
}

static void step(struct work *work)
{
    unsigned i = random_below(&work->chance, SLOTS), kind = random_below(&work->chance, 4);
    size_t size = any_size(work), before = work->sizes[i];
    unsigned char *at;
    errno = 0;
    if (kind == 0 && work->blocks[i]) {
        at = hoard_realloc(work->blocks[i], size);
        if (at) expect(at[0] == (unsigned char)i, "realloc has lost contents");
        if (at && size >= before) expect(is_whole(at, before, (unsigned char)i), "realloc has lost contents");
    } else {
        drop(work, i);
        at = kind == 1   ? hoard_calloc(1, size)
             : kind == 2 ? hoard_aligned_alloc(64, size)
                         : hoard_malloc(size);
        if (at && kind == 1)
            for (size_t k = 0; k < size; k += 509) expect(at[k] == 0, "calloc is not zero");
    }
    if (!at) {
        expect(errno == ENOMEM, "errno is not ENOMEM");
        work->refused++;
        return;
    }
    fill(at, size, (unsigned char)i);
    work->blocks[i] = at;
    work->sizes[i] = size;
}

static void drop_all(struct work *work)
{
    for (unsigned i = 0; i < SLOTS; i++) drop(work, i);
}

/* A reap with children, now and then. */
static void step_reap(struct work *work)
{
    void *reap, *child;
    reapCreate(&reap, NULL);
    if (!reap) {
        work->refused++;
        return;
    }
    reapCreate(&child, &reap);
    for (unsigned n = random_below(&work->chance, 100); n > 0; n--) {
        size_t size = any_size(work) % 100000 + 1;
        unsigned char *at = reapCalloc(child ? &child : &reap, 1, size);
        work->refused += at == NULL;
        if (at == NULL) continue;
        expect(all_bytes(at, size, 0), "reapCalloc is not zero");
        fill(at, size, 7);
        if (n % 3 == 0) reapFree(child ? &child : &reap, at);
    }
    reapDestroy(&reap);
}

static unsigned work_for(unsigned steps)
{
    static __thread struct work work;
    work.chance = (uintptr_t)&work * 0x9e3779b97f4a7c15u | 1;
    work.refused = 0;
    for (unsigned n = 0; n < steps; n++) {
        step(&work);
        if (n % 200 == 0) step_reap(&work);
        if (n % 1000 == 999) hoard_trim(0);
    }
    drop_all(&work);
    return work.refused;
}

static void check_all_is_back(void)
{
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "heaps");
    hoard_trim(0);
    for (unsigned i = 0; held_bytes() != 0 && i < 100;
         i++) { /* the thread that purges may have slots in hands */
        usleep(1000);
        hoard_trim(0);
    }
    expect(held_bytes() == 0, "something is held");
}

/* --- locked memory ------------------------------------------------------------------------------------ */

/* madvise says EINVAL of what is locked, so a part of an arena is not given back, nor may be called clean. */
static void all_locked(void *arg)
{
    (void)arg;
    work_for(500);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) skip("RLIMIT_MEMLOCK is too low for mlockall");
    expect(work_for(3000) == 0, "refused");
    expect(live_bytes() == 0 && heap_is_valid(), "heaps");
    munlockall();
    check_all_is_back();
}

TEST(memory_is_locked, .times = PATHS)
{
    const char *path = use_path(_i, _i == 0 ? "purge_ms=0" : "thp=never");
    in_child("all memory locked ", path, all_locked, NULL);
}

/* But by unmapping: what was freed leaves memory though all of it is locked, when asked to, and by itself. */
static void locked_and_freed(void *arg)
{
    enum { SIZE = 10000, COUNT = 20000, LITTLE = 16 << 20 /* bytes */ };
    /* The arenas' descriptors stay, and are locked too: with notes 85 KiB for each 4 MiB. */
    enum { STAYS = COUNT * (size_t)SIZE / 32 };
    static void *blocks[COUNT];
    bool trims = arg != NULL;
    expect(work_for(10) == 0, "refused"); /* the first reap's tables stay */
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) skip("RLIMIT_MEMLOCK is too low for mlockall");
    /* On another CPU's heap what is freed here waits for that heap's next slow path (heaps=cpu). */
    pin_to(0);
    size_t before = resident();
    for (unsigned i = 0; i < COUNT; i++) {
        blocks[i] = hoard_malloc(SIZE);
        if (!blocks[i]) skip("200 MB cannot be locked");
        memset(blocks[i], 1, SIZE);
    }
    expect(resident() > before + COUNT * (size_t)SIZE, "less than all of it is in memory");
    for (unsigned i = 0; i < COUNT; i++) hoard_free(blocks[i]);
    if (trims) hoard_trim(0);
    for (unsigned i = 0; !trims && i < 20; i++) { /* what is slow purges by itself */
        usleep(2000);
        hoard_free(hoard_malloc(40000 + i * 4096));
    }
    size_t after = resident();
    fprintf(stderr, ": %zu MB before, %zu afterwards", before >> 20, after >> 20);
    expect(!trims || held_bytes() == 0, "something is held");
    expect(after < before + (trims ? STAYS : COUNT * (size_t)SIZE / 2), "what was freed is in memory");
    for (unsigned round = 0; round < 3; round++) expect(work_for(1000) == 0, "refused");
    check_all_is_back();
    expect(resident() < before + LITTLE, "it is in memory after all");
}

TEST(locked_memory_goes_back, .times = 2 * PATHS)
{
    const char *path = use_path(_i % PATHS, _i < PATHS ? NULL : "purge_ms=1");
    in_child(_i < PATHS ? "locked, trimmed" : "locked, left alone", path, locked_and_freed,
             _i < PATHS ? &path : NULL);
}

/* Who may lock any amount gives that up. */
static bool may_lock_a_little(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
    if (limit.rlim_cur > (rlim_t)64 << 20) limit.rlim_cur = (rlim_t)64 << 20;
    return syscall(SYS_capset, &head, none) == 0 && setrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
           mlockall(MCL_FUTURE) == 0;
}

/* To lock more than one may is EAGAIN, of mmap and mremap. */
static void locked_up_to_a_limit(void *arg)
{
    (void)arg;
    if (!may_lock_a_little()) skip("RLIMIT_MEMLOCK is not to be had");
    static void *all[2000];
    unsigned n = 0;
    errno = 0;
    while (n < 2000 && (all[n] = hoard_malloc(100000)) != NULL) memset(all[n++], 1, 100000);
    expect(n < 2000 && errno == ENOMEM, "no end, or another errno");
    errno = 0;
    expect(hoard_malloc((size_t)65 << 20) == NULL && errno == ENOMEM, "errno of a large object");
    errno = 0;
    expect(hoard_realloc(all[0], (size_t)65 << 20) == NULL && errno == ENOMEM, "errno of realloc");
    while (n > 0) hoard_free(all[--n]);
    work_for(2000);
    expect(live_bytes() == 0 && heap_is_valid(), "heaps");
    munlockall();
    check_all_is_back();
}

TEST(locked_memory_has_a_limit, .times = PATHS)
{
    in_child("locked memory with a limit ", use_path(_i, NULL), locked_up_to_a_limit, NULL);
}

/* --- limits ------------------------------------------------------------------------------------------- */

static void with_little(int which, size_t beside)
{
    struct rlimit limit = {beside + ((size_t)60 << 20), RLIM_INFINITY};
    expect(setrlimit((__rlimit_resource_t)which, &limit) == 0, "setrlimit");
    unsigned refused = 0;
    for (unsigned round = 0; round < 5; round++) {
        void *all[40];
        for (unsigned i = 0; i < 40; i++) refused += (all[i] = hoard_calloc(1, 3000000)) == NULL;
        refused += work_for(1000);
        for (unsigned i = 0; i < 40; i++) hoard_free(all[i]);
    }
    expect(refused != 0, "there was enough");
    expect(work_for(1000) < 100, "it does not recover");
    check_all_is_back();
}

static void little_data(void *arg)
{
    (void)arg;
    with_little(RLIMIT_DATA, 0);
}

/* Addresses are counted as if each were memory, which is what the kernel does without overcommit. */
static void little_address_space(void *arg)
{
    (void)arg;
    with_little(RLIMIT_AS, held_by_process().addresses);
}

TEST(addresses_have_a_limit, .times = PATHS)
{
    in_child("a limit on addresses", use_path(_i, NULL), little_address_space, NULL);
}

TEST(data_has_a_limit, .times = PATHS) { in_child("a limit on data", use_path(_i, NULL), little_data, NULL); }

/* --- until there is nothing left ------------------------------------------------------------------------ */

/* From here on `more` bytes of addresses are to be had. */
static void limit_addresses(size_t more)
{
    struct rlimit limit = {held_by_process().addresses + more, RLIM_INFINITY};
    expect(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

enum { ALL = 400000 };

static void *all[ALL];

static size_t allocate_all(size_t size)
{
    size_t n = 0;
    errno = 0;
    while (n < ALL && (all[n] = hoard_malloc(size)) != NULL) memset(all[n++], 1, size < 100 ? size : 100);
    expect(n == ALL || errno == ENOMEM, "errno is not ENOMEM");
    return n;
}

static void free_all(size_t n)
{
    for (size_t i = 0; i < n; i++) hoard_free(all[i]);
}

static void fill_and_empty(void *arg)
{
    static const size_t sizes[] = {100, 1000, 8000, 30000, 100000, 3000000, 5000000};
    size_t more = (uintptr_t)arg;
    free(malloc(1000)); /* libc has its arena */
    limit_addresses(more);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = allocate_all(sizes[i]);
        expect(n * sizes[i] >= more / 2 - 8 * MIB, "much less than there was to have");
        free_all(n);
        size_t again = allocate_all(sizes[i]);
        expect(again + again / 8 + 70 >= n, "what was freed is lost");
        free_all(again); /* and must serve the next size */
    }
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "accounts");
}

TEST(full_and_empty_again, .times = PATHS)
{
    in_child("filled and emptied", use_path(_i, NULL), fill_and_empty, (void *)(48 * MIB));
}

static void *until_full(void *arg)
{
    (void)arg;
    void *last = NULL;
    for (void *p; (p = hoard_malloc(3000)) != NULL; last = p) *(void **)p = last;
    bool right = errno == ENOMEM;
    while (last != NULL) {
        void *before = *(void **)last;
        hoard_free(last);
        last = before;
    }
    return right ? NULL : (void *)1;
}

static void threads_until_full(void *arg)
{
    (void)arg;
    pthread_t threads[3];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KIB);
    limit_addresses(300 * MIB); /* libc takes 128 MiB for the arena of a thread, if it can */
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3; i++)
            expect(pthread_create(&threads[i], &small, until_full, NULL) == 0, "no thread");
        for (unsigned i = 0; i < 3; i++) {
            void *wrong;
            pthread_join(threads[i], &wrong);
            expect(wrong == NULL, "errno of a thread is not ENOMEM");
        }
    }
    expect(live_bytes() == 0, "something lives");
    expect(heap_is_valid(), "accounts");
    hoard_trim(0);
    expect(held_bytes() == 0, "something is held");
}

TEST(threads_come_to_the_end_together, .times = PATHS)
{
    in_child("filled by threads", use_path(_i, NULL), threads_until_full, NULL);
}

/* --- no overcommit ------------------------------------------------------------------------------------ */

#define OVERCOMMIT "/proc/sys/vm/overcommit_memory"

static int overcommit(void)
{
    int now = -1;
    FILE *file = fopen(OVERCOMMIT, "r");
    if (!file) return -1;
    if (fscanf(file, "%d", &now) != 1) now = -1;
    fclose(file);
    return now;
}

static bool set_overcommit(int mode)
{
    FILE *file = fopen(OVERCOMMIT, "w");
    if (!file) return false;
    bool done = fprintf(file, "%d\n", mode) > 0;
    return fclose(file) == 0 && done;
}

/* Has the kernel commit no more than there is, until the descriptor is closed, also by this process's death.
 * -1: not to be had. */
static int without_overcommit(pid_t *guard)
{
    int ends[2], before = overcommit();
    if (before < 0 || pipe(ends) != 0) return -1;
    *guard = fork();
    if (*guard == 0) {
        char nothing;
        setsid(); /* who kills the group leaves this one */
        close(ends[1]);
        while (read(ends[0], &nothing, 1) < 0 && errno == EINTR) continue;
        _exit(!set_overcommit(before));
    }
    close(ends[0]);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    bool done = *guard > 0 && set_overcommit(2) && overcommit() == 2;
    if (!done) close(ends[1]);
    return done ? ends[1] : -1;
}

/* What is refused is told, and what there is can be had. */
static void commit_strictly(void *end)
{
    close((int)(intptr_t)end); /* the parent has it */
    errno = 0;
    expect(hoard_malloc((size_t)1 << 45) == NULL && errno == ENOMEM, "32 TiB are to be had");
    void *reap;
    reapCreate(&reap, NULL);
    errno = 0;
    expect(reap && reapMalloc(&reap, (size_t)1 << 45) == NULL && errno == ENOMEM, "32 TiB in a reap");
    reapDestroy(&reap);
    expect(work_for(3000) == 0, "refused");
    little_address_space(NULL);
}

/* It is the whole machine's, so other programs that reserve more than they use fail meanwhile. */
TEST(nothing_is_overcommitted, .times = PATHS)
{
    const char *path = use_path(_i, NULL), *what = "no overcommit";
    pid_t guard = -1;
    int end = in_world() ? without_overcommit(&guard) : -1, status = 0;
    if (end < 0)
        note_skip(in_world() ? OVERCOMMIT " cannot be set" : "only in make check-world", what);
    else
        in_child(what, path, commit_strictly, (void *)(intptr_t)end);
    if (end >= 0) close(end);
    if (guard > 0) ck_assert(waitpid(guard, &status, 0) == guard && (end < 0 || status == 0));
    fflush(stdout);
}

/* --- too many mappings -------------------------------------------------------------------------------- */

/* Pages of which each other one is of another kind, until there may be no more. */
static void fill_the_table(void)
{
    enum { PAGES = 1 << 17 };
    long page = sysconf(_SC_PAGESIZE);
    char *start =
        mmap(NULL, PAGES * (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) skip("no addresses");
    for (size_t i = 1; i < PAGES; i += 2)
        if (mprotect(start + i * (size_t)page, (size_t)page, PROT_READ) != 0) return;
    skip("vm.max_map_count is more than this wants to reach");
}

/* Each has a mapping of its own, which the kernel joins with its neighbours'. */
enum { LARGE = 40, LARGE_SIZE = 8 << 20, TOUCHED = 16384 };

static void too_many_mappings(void *arg)
{
    static char *large[LARGE];
    (void)arg;
    work_for(3000);
    for (unsigned i = 0; i < LARGE; i++) {
        large[i] = hoard_malloc(LARGE_SIZE);
        for (unsigned k = 0; k < LARGE_SIZE; k += TOUCHED) large[i][k] = (char)i;
    }
    fill_the_table();
    size_t before = resident();
    for (unsigned i = 0; i < LARGE; i += 2) hoard_free(large[i]); /* each is cut out of one */
    hoard_trim(0);
    size_t gone = before - resident(), were = LARGE / 2 * (size_t)LARGE_SIZE / TOUCHED * 4096;
    expect(before > resident() && gone > were / 4 * 3, "what was freed stays in memory");
    unsigned refused = 0;
    for (unsigned round = 0; round < 5; round++) refused += work_for(1000);
    for (unsigned i = 1; i < LARGE; i += 2)
        for (unsigned k = 0; k < LARGE_SIZE; k += TOUCHED)
            expect(large[i][k] == (char)i, "contents are lost");
    for (unsigned i = 1; i < LARGE; i += 2) hoard_free(large[i]);
    fprintf(stderr, "%u refused", refused);
    expect(work_for(1000) < 100, "what was freed does not serve again");
    check_all_is_back();
}

TEST(there_are_too_many_mappings, .times = PATHS)
{
    in_child("too many mappings: ", use_path(_i, NULL), too_many_mappings, NULL);
}

/* --- a sandbox that comes late ------------------------------------------------------------------------- */

static bool forbid(const int *numbers, unsigned count)
{
    struct sock_filter code[32];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < count; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {(unsigned short)n, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static const struct sandbox {
    int numbers[8];
    unsigned count;
    bool gives_back; /* memory can leave the process */
} sandboxes[] = {
    {{SYS_madvise}, 1, true},
    {{SYS_mremap}, 1, true},
    {{SYS_munmap}, 1, true},
    {{SYS_openat, SYS_prctl, SYS_sched_getaffinity, SYS_getcpu, SYS_clone3}, 5, true},
    {{SYS_madvise, SYS_mremap, SYS_munmap, SYS_openat, SYS_prctl, SYS_mprotect}, 6, false},
};
enum { SANDBOXES = sizeof sandboxes / sizeof *sandboxes };

static void in_sandbox(void *arg)
{
    const struct sandbox *sandbox = arg;
    work_for(1000);
    if (!forbid(sandbox->numbers, sandbox->count)) skip("no filter of system calls");
    size_t before = stats_now().peak_held_bytes;
    for (unsigned round = 0; round < 5; round++) expect(work_for(1000) == 0, "refused");
    expect(stats_now().peak_held_bytes < before + 100 * MIB, "it only grows");
    expect(live_bytes() == 0 && heap_is_valid(), "heaps");
    hoard_trim(0);
}

TEST(a_sandbox_comes_late, .times = SANDBOXES * PATHS)
{
    static const char *const what[SANDBOXES] = {"no madvise", "no mremap", "no munmap", "no files",
                                                "nothing but mmap"};
    int i = _i / PATHS;
    in_child(what[i], use_path(_i % PATHS, "purge_ms=1"), in_sandbox, (void *)(uintptr_t)&sandboxes[i]);
}

/* No more memory at all is to be had: what there is goes round. */
static void no_more_memory(void *arg)
{
    static const int numbers[] = {SYS_mmap, SYS_mremap, SYS_brk};
    (void)arg;
    work_for(2000);
    void *kept = hoard_malloc(20000000); /* one that gives way */
    hoard_free(kept);
    if (!forbid(numbers, 3)) skip("no filter of system calls");
    for (unsigned round = 0; round < 5; round++) work_for(1000);
    expect(live_bytes() == 0 && heap_is_valid(), "heaps");
}

TEST(a_sandbox_gives_no_more_memory, .times = PATHS)
{
    in_child("no more memory", use_path(_i, "purge_ms=3600000"), no_more_memory, NULL);
}

/* --- threads ------------------------------------------------------------------------------------------ */

enum { CROWD = 10000 };
static void *_Atomic crowd[CROWD];
static atomic_uint wrong;
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

/* Leaves a block in a place and frees what was there: another's, mostly. */
static void *one_of_the_crowd(void *number)
{
    uint64_t chance = (uintptr_t)number * 0x9e3779b97f4a7c15u | 1;
    pthread_rwlock_rdlock(&gate);
    pthread_rwlock_unlock(&gate);
    for (unsigned n = 0; n < 20; n++) {
        size_t size = 16 + random_below(&chance, 3000);
        size_t *block = hoard_malloc(size);
        if (!block) {
            wrong++;
            break;
        }
        block[0] = block[1] = size;
        size_t *other = atomic_exchange(&crowd[random_below(&chance, CROWD)], block);
        if (other && other[0] != other[1]) wrong++;
        hoard_free(other);
    }
    return NULL;
}

static void ten_thousand_threads(void *unused)
{
    static pthread_t threads[CROWD];
    pthread_attr_t small;
    unsigned n, most = in_world() ? CROWD : CROWD / 5;
    (void)unused;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32768);
    pthread_rwlock_wrlock(&gate);
    for (n = 0; n < most; n++)
        if (pthread_create(&threads[n], &small, one_of_the_crowd, (void *)(uintptr_t)(n + 1)) != 0) break;
    pthread_rwlock_unlock(&gate);
    for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
    expect(n > 100, "no threads");
    expect(wrong == 0, "contents are lost, or there was no memory");
    for (unsigned i = 0; i < CROWD; i++) hoard_free(crowd[i]);
    check_all_is_back();
}

TEST(there_are_ten_thousand_threads, .times = PATHS)
{
    in_child("a crowd of threads", use_path(_i, NULL), ten_thousand_threads, NULL);
}

int main(void) { return run_tests((struct suite){.seconds = in_world() ? 1000 : 60}); }
