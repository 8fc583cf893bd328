/* SPDX-License-Identifier: Apache-2.0 */
/* stepping.h: instructions of a call, and the atomic read-modify-writes among them, by single steps.
 *
 * A program starts itself again as a child under ptrace. Before each call that counts, the child stops and
 * tells where the call's function begins; the parent steps from there to the return. That also steps
 * through a restartable sequence, which the kernel would restart at each stop for ever. A pointer in the
 * thread's rseq area makes the sequence restartable, and the parent clears it before each step. No other
 * thread uses the child's data, so nothing is lost.
 *
 * STEPPING is defined where all this works. Status 77: it does not, or not here.
 */
#ifndef STEPPING_H
#define STEPPING_H

#include "measure.h"

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)
#define STEPPING 1

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { STEPPING_MOST = 1000000 };

/* --- the child ------------------------------------------------------------------------------- */

static void *stepping_nothing(void *unused) { return unused; }

/* No library that spares its atomics while there is one thread shall look better for it. */
static inline void stepping_begin_child(void)
{
    pthread_t thread;
    measure_need(pthread_create(&thread, NULL, stepping_nothing, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}

/* Stops for the parent: the child is about to call the function at `first`, and then the one at `second`. */
static inline void stepping_stop(uintptr_t first, uintptr_t second)
{
    char *sequence = (char *)__builtin_thread_pointer() + __rseq_offset + offsetof(struct rseq, rseq_cs);
    __asm__ volatile("int3" : : "a"(first), "b"(second), "c"(sequence) : "memory");
}

/* --- the parent ------------------------------------------------------------------------------ */

struct stepping_cost {
    unsigned instructions, atomics;
};

static pid_t stepping_child;
static uint64_t stepping_sequence;

static inline struct user_regs_struct stepping_registers(void)
{
    struct user_regs_struct r;
    measure_need(ptrace(PTRACE_GETREGS, stepping_child, NULL, &r) == 0, "no registers");
    return r;
}

/* Of the functions that a call is counted in. */
#if __has_attribute(noclone)
#define COUNTED static __attribute__((noinline, noclone))
#else
#define COUNTED static __attribute__((noinline))
#endif

static inline uint64_t stepping_word(uint64_t address)
{
    return (uint64_t)ptrace(PTRACE_PEEKTEXT, stepping_child, address, NULL);
}

static inline void stepping_go_on(enum __ptrace_request how)
{
    int status = 0;
    bool went = ptrace(how, stepping_child, NULL, NULL) == 0;
    measure_need(went && waitpid(stepping_child, &status, 0) == stepping_child, "no child");
    measure_need(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "the child ended early");
}

/* Lets the child run to its next stop, and returns what the child tells there. */
static inline struct user_regs_struct stepping_next(void)
{
    stepping_go_on(PTRACE_CONT);
    struct user_regs_struct r = stepping_registers();
    stepping_sequence = r.rcx;
    return r;
}

static inline void stepping_step(void)
{
    bool restartable = stepping_word(stepping_sequence) != 0;
    if (restartable) ptrace(PTRACE_POKEDATA, stepping_child, stepping_sequence, NULL);
    stepping_go_on(PTRACE_SINGLESTEP);
}

/* lock anything, or xchg with memory, which locks by itself. */
static inline bool stepping_is_atomic(uint64_t address)
{
    uint64_t words[2] = {stepping_word(address), stepping_word(address + 8)};
    const unsigned char *code = (const unsigned char *)words;
    bool locked = false;
    for (; memchr("\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0", *code, 11) != NULL; code++)
        locked |= *code == 0xf0;
    if (*code >= 0x40 && *code <= 0x4f) code++;
    return locked || ((*code == 0x86 || *code == 0x87) && code[1] < 0xc0);
}

/* Counts from the entry of the function at `entry` to its return. *least keeps the least of such counts. */
static inline void stepping_count(uint64_t entry, struct stepping_cost *least)
{
    struct stepping_cost cost = {0, 0};
    struct user_regs_struct r;
    while ((r = stepping_registers()).rip != entry) stepping_step();
    for (uint64_t back = stepping_word(r.rsp); r.rip != back; r = stepping_registers()) {
        cost.instructions++;
        cost.atomics += stepping_is_atomic(r.rip);
        measure_need(cost.instructions < STEPPING_MOST, "a call that does not return");
        stepping_step();
    }
    if (least->instructions == 0 || cost.instructions < least->instructions) *least = cost;
}

/* Both processes stay on one CPU: a switch between them is short there, and the child keeps its heap. */
static inline void stepping_stay(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
}

/* Starts the program again, as `argv[0] child`, with a library preloaded unless that is "". Addresses are
 * the same each time, so that counts are. 0, or the status to exit with. */
static inline int stepping_start(char **argv, const char *preload)
{
    int status;
    stepping_stay();
    stepping_child = fork();
    if (stepping_child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
        personality(ADDR_NO_RANDOMIZE); /* where that is forbidden, some counts differ a little */
        if (*preload) setenv("LD_PRELOAD", preload, 1);
        execl("/proc/self/exe", argv[0], "child", NULL);
        _exit(127);
    }
    measure_need(waitpid(stepping_child, &status, 0) == stepping_child, "no child");
    if (WIFEXITED(status)) {
        fprintf(stderr, "%s: no child under ptrace here\n", argv[0]);
        return WEXITSTATUS(status);
    }
    ptrace(PTRACE_SETOPTIONS, stepping_child, NULL, PTRACE_O_EXITKILL);
    return 0;
}

static inline void stepping_end(void) { kill(stepping_child, SIGKILL); }

#endif

static inline int stepping_unsupported(const char *program)
{
    fprintf(stderr, "%s: x86-64 and glibc 2.35 only\n", program);
    return 77;
}

#endif
