/* SPDX-License-Identifier: Apache-2.0 */
/* step.h: a thread that looks at its own data after each instruction of a call, as another thread might.
 *
 * The processor's trap flag raises SIGTRAP after each instruction, and the handler looks. So every moment at
 * which another thread may look is there, each in every run, and none takes luck. (What another processor may
 * see in another order than that of the instructions is not.)
 *
 * A signal restarts a restartable section, for ever where one comes with each instruction: the library has to
 * be on the locked path.
 */
#ifndef STEP_H
#define STEP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

#include "base/lock.h"

static void (*step_look)(void); /* called after each instruction; may call what only reads */
static volatile unsigned long step_count;
static volatile bool step_is_last; /* set by step_look: the rest of the call runs without steps */

static void step_taken(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    step_count++;
    step_look();
#if defined(__x86_64__)
    if (step_is_last) ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)0x100;
#else
    (void)context;
#endif
}

#if defined(__x86_64__)
#define STEP_SET_FLAGS(change)                                                                               \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"                                                            \
                     "pushf\n\t" change " (%%rsp)\n\t"                                                       \
                     "popf\n\t"                                                                              \
                     "lea 128(%%rsp), %%rsp" ::                                                              \
                         : "memory", "cc")
#define step_begin() STEP_SET_FLAGS("orq $0x100,")
#define step_end() STEP_SET_FLAGS("andq $~0x100,")
#else
#define step_begin() (void)0
#define step_end() (void)0
#endif

/* Calls a function as another thread would, which holds none of this thread's locks. */
static inline void step_aside(void (*what)(void))
{
#ifdef REAP_DEBUG
    struct lock_ranks mine = lock_ranks;
    lock_ranks = (struct lock_ranks){.me = &mine};
    what();
    lock_ranks = mine;
#else
    what();
#endif
}

static void step_nothing(void) {}

/* Returns true if there are steps here: not on all processors, nor in tools that run a program by themselves.
 */
static bool step_start(void)
{
    struct sigaction action = {.sa_sigaction = step_taken, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTRAP, &action, NULL);
    step_look = step_nothing;
    step_count = 0;
    step_begin();
    step_end();
    return step_count > 0;
}

#endif
