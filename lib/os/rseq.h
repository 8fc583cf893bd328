/* SPDX-License-Identifier: Apache-2.0 */
/* rseq.h: the id of this thread's heap, and the restartable sequences on it.
 *
 * A restartable sequence (rseq), or section, is a stretch of code that the kernel restarts when the thread is
 * preempted, migrated or signalled inside it. Its effect is one store, its last instruction. So data that
 * only the holder of a heap id writes needs neither lock nor atomic instruction:
 *
 *     id := this thread's, from the rseq area      |
 *     look at id's data, prepare                   |  any interruption: from the top
 *     commit: one store                            |
 *
 * The id is the kernel's concurrency id (mm_cid, Linux 6.3). It belongs to one running thread at a time, and
 * ids are compact in the process: a process of one thread has one heap wherever it runs. On older kernels the
 * id is the CPU's number. glibc 2.35 registers the area; the library never does.
 *
 * Where there is no rseq (Valgrind, qemu, older kernels, other libcs), cpu.ids is 0 and heaps are locked.
 * Then no section may be entered, nor before rseq_init.
 *
 * Threads: any; rseq_init once, before all other calls. Threads read cpu.ids, and tables that are filled
 * after rseq_init, without a lock. A thread that sees these also sees all stores before rseq_init, because
 * rseq_init makes every processor run a barrier; the fast path has none. Stores between rseq_init and the
 * table need an rseq_fence before the table.
 */
#ifndef RSEQ_H
#define RSEQ_H

#include "base/base.h"

#if (defined(__x86_64__) || defined(__aarch64__)) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define RSEQ_AVAILABLE 1
#else
#define RSEQ_AVAILABLE 0
#endif

enum { IDS_MAX = 4096 }; /* heap ids; a machine with more CPUs gets the locked path */

struct cpu {
    uint32_t ids;        /* ids are below this; 0: no rseq, heaps are locked */
    uint32_t count;      /* CPUs that this process may run on, at start */
    intptr_t section_at; /* the area's word for a descriptor; not first: gcc then loads its address */
    intptr_t now_at;     /* the CPU's number; 0: ask the kernel. Both are offsets from the thread pointer */
    const char *path;    /* "rseq cid", "rseq cpu" or "locked" */
    const char *reason;  /* why rseq_init chose this path */
};

extern HIDDEN struct cpu cpu;

/* The offset of the id from the thread pointer. In `cpu`, gcc would load its address first. */
extern HIDDEN intptr_t rseq_id_at;

/* Chooses the path. want_cpu: CPU numbers also where there are concurrency ids. want_locked: no rseq. */
void rseq_init(bool want_cpu, bool want_locked);

/* Returns the CPU on which this thread runs, or ran just before. Works on every path. */
unsigned rseq_cpu_now(void);

/* Restarts every section that runs in this process: none still acts on what it read before. Only on the
 * rseq paths. Aborts with one line when a sandbox has forbidden membarrier since the start. */
void rseq_fence(void);

enum rseq_result {
    RSEQ_DONE,
    RSEQ_CHANGED /* *at was not expected */,
    RSEQ_MOVED /* this thread has another id */
};

/* NULL, in a form that the compiler must load. gcc before 12.4 and 13.3 loses a constant that it has to set
 * on the way out of an `asm goto` by a label, where the fall-through gives an output to the same variable (PR
 * 113921 and its kin). heap_malloc_slow once returned a section's half-made block so. */
static ALWAYS_INLINE void *rseq_none(void)
{
    void *none = NULL;
    __asm__ volatile("" : "+r"(none));
    return none;
}

#if RSEQ_AVAILABLE && defined(__x86_64__)
#include "os/rseq_x86_64.h"
#elif RSEQ_AVAILABLE
#include "os/rseq_aarch64.h"
#else
static inline uint32_t rseq_id(void) { return 0; }
#endif

/* Stores value to *at if this thread has the id, *at is expected and *flag is 0. */
static inline enum rseq_result rseq_store_unless(const _Atomic uint32_t *flag, uint32_t id, void *at,
                                                 uint64_t expected, uint64_t value)
{
#if RSEQ_AVAILABLE
    uint64_t t;
    __asm__ volatile goto(RSEQ_STORE_UNLESS
                          : [t] "=&r"(t)
                          : RSEQ_SECTION_INPUTS, [id] "r"(id), [at] "r"(at), [expected] "r"(expected),
                            [value] "r"(value), [flag] "r"(flag)
                          : "memory", "cc"
                          : moved, changed);
    return RSEQ_DONE;
changed:
    return RSEQ_CHANGED;
moved:
#else
    (void)flag, (void)id, (void)at, (void)expected, (void)value; /* never called: cpu.ids is 0 */
#endif
    return RSEQ_MOVED;
}

extern HIDDEN const _Atomic uint32_t rseq_no_flag; /* 0 */

/* Stores value to *at if this thread has the id and *at is expected. */
static inline enum rseq_result rseq_store(uint32_t id, void *at, uint64_t expected, uint64_t value)
{
    return rseq_store_unless(&rseq_no_flag, id, at, expected, value);
}

#endif
