/* SPDX-License-Identifier: Apache-2.0 */
/* steps PRELOAD: how many instructions a malloc and a free of each size take on the fast path, and how many
 * of them are atomic read-modify-writes, for the malloc that PRELOAD ("" for none) brings. A line a size:
 *
 *     SIZE  INSTRUCTIONS ATOMICS of malloc  INSTRUCTIONS ATOMICS of free
 *
 * A child runs under ptrace and is single-stepped from the entry of a call to its return. That also steps
 * through a restartable sequence, which the kernel would restart at each stop for ever: what makes it one is
 * a pointer in the thread's rseq area, and that is cleared before each step. The child is alone on its data,
 * so nothing is lost. Status 77 where that cannot be done.
 *
 * Each number is the least of several calls, after many others: the path that is taken nearly always.
 */
#include "measure.h"

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM = 600, TRIES = 16, STEPS_MAX = 1000000 };

static const size_t sizes[] = {8, 16, 64, 100, 256, 1000, 4000, 16000, 32000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* --- the child ------------------------------------------------------------------------------- */

typedef void *malloc_call(size_t size);
typedef void free_call(void *block);

/* Stops for the parent, three words in registers. */
static void stop(uint64_t a, uint64_t b, uint64_t c)
{
    __asm__ volatile("int3" : : "a"(a), "b"(b), "c"(c) : "memory");
}

static void *nothing(void *unused) { return unused; }

static int child(void)
{
    malloc_call *get = (malloc_call *)dlsym(RTLD_DEFAULT, "malloc");
    free_call *put = (free_call *)dlsym(RTLD_DEFAULT, "free");
    static void *blocks[WARM];
    pthread_t thread;
    /* No malloc that spares its atomics while there is one thread shall look better for it. */
    measure_need(pthread_create(&thread, NULL, nothing, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
    stop((uint64_t)get, (uint64_t)put,
         (uint64_t)((char *)__builtin_thread_pointer() + __rseq_offset + offsetof(struct rseq, rseq_cs)));
    for (int s = 0; s < SIZES; s++) {
        for (int i = 0; i < WARM; i++) blocks[i] = measure_touch(get(sizes[s]));
        for (int i = 0; i < WARM; i += 2) put(blocks[i]); /* half stay: no page becomes empty by a free */
        for (int i = 0; i < TRIES; i++) {
            stop(0, 0, 0);
            void *block = get(sizes[s]);
            put(block);
            stop(0, 0, 0);
        }
    }
    return 0;
}

/* --- the parent ------------------------------------------------------------------------------ */

struct cost {
    unsigned instructions, atomics;
};

static pid_t traced;
static uint64_t malloc_at, free_at, sequence_at;

static struct user_regs_struct registers(void)
{
    struct user_regs_struct r;
    measure_need(ptrace(PTRACE_GETREGS, traced, NULL, &r) == 0, "no registers");
    return r;
}

static uint64_t word_at(uint64_t address) { return (uint64_t)ptrace(PTRACE_PEEKTEXT, traced, address, NULL); }

static void go_on(enum __ptrace_request how)
{
    int status;
    measure_need(ptrace(how, traced, NULL, NULL) == 0 && waitpid(traced, &status, 0) == traced, "no child");
    measure_need(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "the child ended early");
}

static void step(void)
{
    if (word_at(sequence_at) != 0) ptrace(PTRACE_POKEDATA, traced, sequence_at, NULL);
    go_on(PTRACE_SINGLESTEP);
}

/* lock anything, or xchg with memory, which locks by itself. */
static bool is_atomic(uint64_t address)
{
    uint64_t words[2] = {word_at(address), word_at(address + 8)};
    const unsigned char *code = (const unsigned char *)words;
    bool locked = false;
    for (; memchr("\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0", *code, 11) != NULL; code++)
        locked |= *code == 0xf0;
    if (*code >= 0x40 && *code <= 0x4f) code++;
    return locked || ((*code == 0x86 || *code == 0x87) && code[1] < 0xc0);
}

/* From the entry of the function at `entry` to its return. */
static struct cost cost_of(uint64_t entry)
{
    struct cost cost = {0, 0};
    struct user_regs_struct r;
    while ((r = registers()).rip != entry) step();
    for (uint64_t back = word_at(r.rsp); r.rip != back; r = registers()) {
        cost.instructions++;
        cost.atomics += is_atomic(r.rip);
        measure_need(cost.instructions < STEPS_MAX, "a call that does not return");
        step();
    }
    return cost;
}

static void keep_least(struct cost *least, struct cost cost)
{
    if (least->instructions == 0 || cost.instructions < least->instructions) *least = cost;
}

static int parent(void)
{
    int status;
    measure_need(waitpid(traced, &status, 0) == traced, "no child");
    if (WIFEXITED(status)) return WEXITSTATUS(status); /* ptrace is forbidden here, or the exec failed */
    go_on(PTRACE_CONT);
    struct user_regs_struct r = registers();
    malloc_at = r.rax, free_at = r.rbx, sequence_at = r.rcx;
    for (int s = 0; s < SIZES; s++) {
        struct cost get = {0, 0}, put = {0, 0};
        for (int i = 0; i < TRIES; i++) {
            go_on(PTRACE_CONT);
            keep_least(&get, cost_of(malloc_at));
            keep_least(&put, cost_of(free_at));
            go_on(PTRACE_CONT);
        }
        printf("%zu %u %u %u %u\n", sizes[s], get.instructions, get.atomics, put.instructions, put.atomics);
    }
    kill(traced, SIGKILL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[2], "child") == 0) return child();
    measure_need(argc == 2, "usage: steps PRELOAD");
    traced = fork();
    if (traced == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
        if (*argv[1]) setenv("LD_PRELOAD", argv[1], 1);
        execl("/proc/self/exe", argv[0], argv[1], "child", NULL);
        _exit(127);
    }
    return parent();
}

#else

int main(void)
{
    fprintf(stderr, "steps: x86-64 and glibc 2.35 only\n");
    return 77;
}

#endif
