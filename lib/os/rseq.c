/* SPDX-License-Identifier: Apache-2.0 */
#include "os/rseq.h"

#include "base/kernel.h"
#include "base/parse.h"
#include "base/report.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

struct cpu cpu = {.count = 1, .path = "locked", .reason = "not started"};
intptr_t rseq_id_at = -1; /* not 0, so that it lies beside `cpu`, on a cache line that no thread writes */
const _Atomic uint32_t rseq_no_flag = 0;

static bool is_registered; /* for membarrier; a forked child is registered too */

static long membarrier(int command) { return KERNEL(SYS_membarrier, command, 0, 0); }

/* Tries again for a while, since the kernel may lack memory for it for the moment. */
static bool fence_by_membarrier(void)
{
    enum { PATIENCE = 1000 /* yields of the CPU */ };
    for (unsigned left = PATIENCE; membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ) != 0; left--) {
        if (left == 0 || (errno != ENOMEM && errno != EAGAIN && errno != EINTR)) return false;
        KERNEL(SYS_sched_yield);
    }
    return true;
}

void rseq_fence(void)
{
    int saved = errno;
    if (!fence_by_membarrier() && is_registered) {
        report_line("the kernel has allowed membarrier before, and refuses it now");
        abort(); /* the process entered a sandbox later; without fences two threads would take one block */
    }
    errno = saved;
}

unsigned rseq_cpu_now(void)
{
    const char *thread = __builtin_thread_pointer();
    if (cpu.now_at != 0) return __atomic_load_n((const uint32_t *)(thread + cpu.now_at), __ATOMIC_RELAXED);
    unsigned now = 0;
    KERNEL(SYS_getcpu, &now, NULL);
    return now;
}

static unsigned count_cpus(void)
{
    unsigned char mask[1024]; /* 8192 CPUs; with more the call fails, and the guess is two */
    long n = KERNEL(SYS_sched_getaffinity, 0, sizeof mask, mask);
    if (n <= 0) return 2;
    unsigned count = 0;
    for (long i = 0; i < n; i++) count += (unsigned)__builtin_popcount(mask[i]);
    return count != 0 ? count : 1;
}

#if RSEQ_AVAILABLE

/* Returns the number of possible CPUs, by the last number in the list "0-127" or "0,2-3". */
static unsigned possible_cpus(void)
{
    char text[256];
    const char *at = text,
               *end = text + kernel_read_file("/sys/devices/system/cpu/possible", text, sizeof text);
    size_t last = IDS_MAX - 1;
    while (at < end)
        if (!parse_number(&at, end, UINT32_MAX, &last)) at++;
    return (unsigned)last + 1;
}

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
enum { ID_CPU = offsetof(struct rseq, cpu_id), ID_CID = 24 /* mm_cid, which glibc 2.36's struct lacks */ };

/* Returns why there is no fast path here, or NULL. */
static const char *obstacle(bool want_locked)
{
    if (want_locked) return "asked for by REAP_OPTIONS";
    if (__rseq_size == 0)
        return "rseq is not registered (old kernel, Valgrind, qemu or glibc.pthread.rseq=0)";
    if (possible_cpus() > IDS_MAX) return "more CPUs than the table of heaps has rows";
    is_registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ) == 0;
    return is_registered ? NULL : "membarrier has no rseq command";
}

static void choose_path(bool want_cpu, bool want_locked)
{
    if (__rseq_size != 0) cpu.now_at = __rseq_offset + ID_CPU;
    cpu.reason = obstacle(want_locked);
    if (cpu.reason != NULL) return;
    bool has_cid = getauxval(AT_RSEQ_FEATURE_SIZE) >= ID_CID + sizeof(uint32_t);
    bool cid = has_cid && !want_cpu;
    cpu.section_at = __rseq_offset + (intptr_t)offsetof(struct rseq, rseq_cs);
    rseq_id_at = __rseq_offset + (cid ? ID_CID : ID_CPU);
    cpu.path = cid ? "rseq cid" : "rseq cpu";
    cpu.reason = cid       ? "the kernel has concurrency ids"
                 : has_cid ? "asked for by REAP_OPTIONS"
                           : "the kernel has no concurrency ids (before 6.3)";
    rseq_fence(); /* a thread that sees ids, or an open fast path, sees all earlier stores: see rseq.h */
    cpu.ids = IDS_MAX;
}

#else

static void choose_path(bool want_cpu, bool want_locked)
{
    (void)want_cpu, (void)want_locked;
    cpu.reason = "no restartable sequences on this architecture or libc";
}

#endif

void rseq_init(bool want_cpu, bool want_locked)
{
    int saved = errno;
    cpu.count = count_cpus();
    choose_path(want_cpu, want_locked);
    errno = saved;
}
