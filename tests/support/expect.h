/* SPDX-License-Identifier: Apache-2.0 */
/* expect.h: what the programs that run under a preloaded malloc use in the place of Check, whose
 * own allocations, forks and time limits would be part of what is tested.
 *
 * A program ends with `return expect_status();`, or with `return run_cases(NULL);` if it has cases.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int expect_failures;

/* Notes a condition that does not hold, and goes on. */
#define EXPECT(condition) expect_(!!(condition), #condition, __FILE__, __LINE__)

static inline void expect_(int holds, const char *condition, const char *file, int line)
{
    if (holds) return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    expect_failures++;
}

static inline int expect_status(void) { return expect_failures ? 1 : 0; }

/* Begins a case of the program: its body follows. */
#define CASE(name)                                                                                           \
    static void name(void);                                                                                  \
    static __attribute__((constructor)) void name##_is_a_case(void) { add_case(#name, name); }               \
    static void name(void)

struct cases {
    unsigned count;
    const char *names[40];
    void (*runs[40])(void);
};

static inline struct cases *all_cases(void)
{
    static struct cases cases;
    return &cases;
}

static inline void add_case(const char *name, void (*run)(void))
{
    struct cases *all = all_cases();
    if (all->count == sizeof all->names / sizeof *all->names) abort();
    all->names[all->count] = name;
    all->runs[all->count++] = run;
}

/* In their order, or the one of that name. */
static inline int run_cases(const char *name)
{
    const struct cases *all = all_cases();
    for (unsigned i = 0; i < all->count; i++)
        if (!name || strcmp(name, all->names[i]) == 0) all->runs[i]();
    return expect_status();
}

/* Runs this program with a word and REAP_OPTIONS. Returns its status. */
static inline int run_again(const char *word, const char *options)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("REAP_OPTIONS", options, 1);
        execl("/proc/self/exe", program_invocation_short_name, word, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return status;
}

/* Hides a value from the compiler, which would warn of (and reason about) odd arguments, and take
 * malloc and free of the same pointer away. */
#define OPAQUE(value)                                                                                        \
    __extension__({                                                                                          \
        __typeof__(0 ? (value) : (value)) opaque_ = (value);                                                 \
        __asm__ volatile("" : "+r"(opaque_) : : "memory");                                                   \
        opaque_;                                                                                             \
    })

#endif
