/* SPDX-License-Identifier: Apache-2.0 */
#include "stepping.h"

#ifdef STEPPING

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/wait.h>

enum { WARM = 600, TRIES = 6 }; /* a step takes long, and there are many */
enum { STEPPING_MOST = 1000000 };

/* --- the child ------------------------------------------------------------------------------- */

static void *stepping_nothing(void *unused) { return unused; }

void stepping_begin_child(void)
{
    pthread_t thread;
    measure_need(pthread_create(&thread, NULL, stepping_nothing, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}

void stepping_stop(uintptr_t first, uintptr_t second)
{
    char *sequence = (char *)__builtin_thread_pointer() + __rseq_offset + offsetof(struct rseq, rseq_cs);
    __asm__ volatile("int3" : : "a"(first), "b"(second), "c"(sequence) : "memory");
}

/* --- the parent ------------------------------------------------------------------------------ */

static pid_t child;
static uint64_t sequence_of_child;

static struct user_regs_struct stepping_registers(void)
{
    struct user_regs_struct r;
    measure_need(ptrace(PTRACE_GETREGS, child, NULL, &r) == 0, "no registers");
    return r;
}

static uint64_t stepping_word(uint64_t address)
{
    return (uint64_t)ptrace(PTRACE_PEEKTEXT, child, address, NULL);
}

static void stepping_go_on(enum __ptrace_request how)
{
    int status = 0;
    bool went = ptrace(how, child, NULL, NULL) == 0;
    measure_need(went && waitpid(child, &status, 0) == child, "no child");
    measure_need(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "the child ended early");
}

struct user_regs_struct stepping_next(void)
{
    stepping_go_on(PTRACE_CONT);
    struct user_regs_struct r = stepping_registers();
    sequence_of_child = r.rcx;
    return r;
}

static void stepping_step(void)
{
    bool restartable = stepping_word(sequence_of_child) != 0;
    if (restartable) ptrace(PTRACE_POKEDATA, child, sequence_of_child, NULL);
    stepping_go_on(PTRACE_SINGLESTEP);
}

/* lock anything, or xchg with memory, which locks by itself. */
static bool stepping_is_atomic(uint64_t address)
{
    uint64_t words[2] = {stepping_word(address), stepping_word(address + 8)};
    const unsigned char *code = (const unsigned char *)words;
    bool locked = false;
    for (; memchr("\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0", *code, 11) != NULL; code++)
        locked |= *code == 0xf0;
    if (*code >= 0x40 && *code <= 0x4f) code++;
    return locked || ((*code == 0x86 || *code == 0x87) && code[1] < 0xc0);
}

void stepping_count(uint64_t entry, struct stepping_cost *least)
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
static void stepping_stay(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
}

int stepping_start(char **argv, const char *preload)
{
    int status;
    stepping_stay();
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
        personality(ADDR_NO_RANDOMIZE); /* where that is forbidden, some counts differ a little */
        if (*preload) setenv("LD_PRELOAD", preload, 1);
        execl("/proc/self/exe", argv[0], "child", NULL);
        _exit(127);
    }
    measure_need(waitpid(child, &status, 0) == child, "no child");
    if (WIFEXITED(status)) {
        fprintf(stderr, "%s: no child under ptrace here\n", argv[0]);
        return WEXITSTATUS(status);
    }
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL);
    return 0;
}

void stepping_end(void) { kill(child, SIGKILL); }

/* --- calls in functions ------------------------------------------------------------------------ */

static void make_calls(const struct stepping_calls *all, int kind, const struct stepping_call *one)
{
    all->pool_begin(kind);
    one->begin();
    for (int i = 0; i < WARM + TRIES; i++) {
        one->before();
        if (i >= WARM) stepping_stop((uintptr_t)one->call, 0);
        one->call();
    }
    all->pool_end();
}

int stepping_run(char **argv, const char *preload, const struct stepping_calls *all)
{
    bool is_child = argv[1] && strcmp(argv[1], "child") == 0;
    int status = is_child ? 0 : stepping_start(argv, preload);
    if (status) return status;
    if (is_child) stepping_begin_child();
    for (int k = 0; k < all->n_kinds; k++)
        for (int c = 0; c < all->n_calls; c++) {
            struct stepping_cost least = {0, 0};
            if (is_child) make_calls(all, k, &all->calls[c]);
            for (int i = 0; i < TRIES && !is_child; i++) stepping_count(stepping_next().rax, &least);
            if (!is_child)
                printf("%u %u %s%s\n", least.instructions, least.atomics, all->calls[c].name, all->kinds[k]);
        }
    if (!is_child) stepping_end();
    return 0;
}

#endif

int stepping_unsupported(const char *program)
{
    fprintf(stderr, "%s: x86-64 and glibc 2.35 only\n", program);
    return 77;
}
