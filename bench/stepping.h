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

#include <sys/user.h>

struct stepping_cost {
    unsigned instructions, atomics;
};

/* Of the functions that a call is counted in. */
#if __has_attribute(noclone)
#define COUNTED static __attribute__((noinline, noclone))
#else
#define COUNTED static __attribute__((noinline))
#endif

/* --- calls in functions, each by itself -------------------------------------------------------- */

struct stepping_call {
    const char *name;
    void (*begin)(void);  /* once, with a new pool */
    void (*before)(void); /* before each call */
    void (*call)(void);
};

/* Each call on each kind of pool: pool_begin makes one of this kind. */
struct stepping_calls {
    const struct stepping_call *calls;
    int n_calls, n_kinds;
    const char *const *kinds; /* what stands behind the calls' names */
    void (*pool_begin)(int kind);
    void (*pool_end)(void);
};

/* The work of main, for `PROGRAM child` and, with a library preloaded unless that is "", for its parent,
 * which prints a line a call: INSTRUCTIONS ATOMICS CALL, the least of several calls after many others. */
int stepping_run(char **argv, const char *preload, const struct stepping_calls *all);

/* --- the child ------------------------------------------------------------------------------- */

/* No library that spares its atomics while there is one thread shall look better for it. */
void stepping_begin_child(void);

/* Stops for the parent: the child is about to call the function at `first`, and then the one at `second`. */
void stepping_stop(uintptr_t first, uintptr_t second);

/* --- the parent ------------------------------------------------------------------------------ */

/* Starts the program again, as `argv[0] child`, with a library preloaded unless that is "". Addresses are
 * the same each time, so that counts are. 0, or the status to exit with. */
int stepping_start(char **argv, const char *preload);

/* Lets the child run to its next stop, and returns what the child tells there. */
struct user_regs_struct stepping_next(void);

/* Counts from the entry of the function at `entry` to its return. *least keeps the least of such counts. */
void stepping_count(uint64_t entry, struct stepping_cost *least);
void stepping_end(void);

#endif

int stepping_unsupported(const char *program);

#endif
