/* SPDX-License-Identifier: Apache-2.0 */
/* check_waits.c: beside processes that do nothing but turn, who waits for whom, and how often. The kernel
 * stops a thread wherever it is, perhaps with a heap's lock, and runs the loops: it comes back much later. So
 * others must not wait for that lock: a malloc goes elsewhere for a superblock, a free leaves its superblock
 * to the holder. What is counted are shares of the tries, not times: other work on the machine makes no
 * difference.
 */
#include "support/check_backend.h"

#include "base/kernel.h"
#include "heap/heap_table.h"

#include <linux/futex.h>
#include <sys/prctl.h>

bool __real_lock_try_for_a_while(struct lock *lock);
bool __wrap_lock_try_for_a_while(struct lock *lock);
void __real_lock_wait(struct lock *lock);
void __wrap_lock_wait(struct lock *lock);
void __real_heap_regroup(struct superblock *sb);
void __wrap_heap_regroup(struct superblock *sb);
long __real_kernel_call(long number, long a, long b, long c, long d, long e, long f);
long __wrap_kernel_call(long number, long a, long b, long c, long d, long e, long f);

/* mallocs that wanted their heap's lock, those that went elsewhere without it, frees that wanted a heap's
 * lock; then mallocs and frees that waited for a heap's lock, and threads that waited for another one; and
 * those that slept for a lock or a gate. */
static atomic_uint tries, detours, regroups, mallocs_wait, frees_wait, other_waits, sleeps;
static __thread bool frees;

static bool is_of_a_heap(const struct lock *lock)
{
    for (struct heap *heap = heap_next(0); heap != NULL; heap = heap_next(heap->id + 1u))
        if (lock == &heap->lock) return true;
    return false;
}

bool __wrap_lock_try_for_a_while(struct lock *lock)
{
    bool got = __real_lock_try_for_a_while(lock);
    bool counts = is_of_a_heap(lock);
    tries += counts;
    detours += counts && !got;
    return got;
}

void __wrap_lock_wait(struct lock *lock)
{
    ++*(!is_of_a_heap(lock) ? &other_waits : frees ? &frees_wait : &mallocs_wait);
    __real_lock_wait(lock);
}

void __wrap_heap_regroup(struct superblock *sb)
{
    regroups++;
    frees = true;
    __real_heap_regroup(sb);
    frees = false;
}

long __wrap_kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
    sleeps += number == SYS_futex && (b & FUTEX_CMD_MASK) == FUTEX_WAIT;
    return __real_kernel_call(number, a, b, c, d, e, f);
}

/* --- the load -------------------------------------------------------------------------------- */

enum { LOOPS_A_CPU = 4, LIVE = 8192, EXCHANGED = 256 };

static _Atomic(void *) exchanged[EXCHANGED];
static unsigned threads_now, steps_each;

/* They are processes, so that their concurrency ids are not this one's, and end with it. */
static pid_t start_loop(unsigned i)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0) return pid;
    pin_to(i);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    for (volatile unsigned turns = 0;; turns++) continue;
}

/* Half of them up to 128 bytes, the others of all magnitudes up to 128 KiB. */
static size_t mixed_size(uint64_t *random)
{
    if (random_below(random, 2) == 0) return 8 + random_below(random, 121);
    size_t least = (size_t)8 << random_below(random, 14);
    return least + random_below(random, (unsigned)least);
}

/* One in ten goes to another thread; of what stays three in four are replaced soon. */
static void *work(void *seed)
{
    uint64_t random = (uintptr_t)seed;
    unsigned n = LIVE / threads_now;
    void **mine = calloc(n, sizeof *mine);
    for (unsigned i = 0; i < steps_each; i++) {
        char *object = hoard_malloc(mixed_size(&random));
        if (object == NULL) abort();
        *object = 1;
        unsigned r = random_below(&random, 40);
        if (r < 4) {
            hoard_free(atomic_exchange(&exchanged[random_below(&random, EXCHANGED)], object));
        } else {
            void **slot = &mine[random_below(&random, r % 4 == 0 ? n : n / 8)];
            hoard_free(*slot);
            *slot = object;
        }
    }
    for (unsigned i = 0; i < n; i++) hoard_free(mine[i]);
    free(mine);
    return NULL;
}

static void run_threads(unsigned n, unsigned steps)
{
    pthread_t threads[16];
    uint64_t random = random_seed();
    threads_now = n;
    steps_each = steps / n;
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(random_next(&random) | 1)), 0);
    for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < EXCHANGED; i++) hoard_free(atomic_exchange(&exchanged[i], NULL));
}

/* --- shares ---------------------------------------------------------------------------------- */

static void run_beside_loops(unsigned n)
{
    pid_t loops[64];
    unsigned count = LOOPS_A_CPU * cpus_at_start();
    if (count > sizeof loops / sizeof *loops) count = sizeof loops / sizeof *loops;
    for (unsigned i = 0; i < count; i++) loops[i] = start_loop(i);
    run_threads(n, shorter(8000000, 2000000));
    for (unsigned i = 0; i < count; i++) kill(loops[i], SIGKILL);
    for (unsigned i = 0; i < count; i++) waitpid(loops[i], NULL, 0);
}

/* In 160 runs on a busy machine the worst shares were 0.032, 0.069 and 0.005. Where each holder of a heap's
 * lock offers its CPU to others, they are 0.42, 0.85 and 0.08. */
TEST(hardly_a_thread_waits, .times = 4)
{
    const unsigned n = _i % 2 == 0 ? 2 : 16;
    const char *path = use_path(_i / 2, NULL);
    needs_rseq();
    run_beside_loops(n);
    struct hoard_stats stats = stats_now();
    unsigned left = regroups - (unsigned)(stats.slow_frees - stats.remote_frees);
    fprintf(
        stderr,
        "%s, %u threads: mallocs %u, elsewhere %u; frees %u, left to the holder %u; mallocs and frees that "
        "waited for a heap %u, %u, otherwise %u; slept %u\n",
        path, n, tries, detours, regroups, left, mallocs_wait, frees_wait, other_waits, sleeps);
    ck_assert_uint_gt(tries, 500);
    ck_assert_uint_gt(regroups, 500);
    ck_assert_uint_le(detours, tries / 10);
    ck_assert_uint_le(left, regroups / 4);
    ck_assert_uint_le(sleeps, tries / 40);
    ck_assert_uint_eq(frees_wait, 0);
}

int main(void) { return run_tests((struct suite){.seconds = 120}); }
