/* SPDX-License-Identifier: Apache-2.0 */
/* delays.c: a thread stands still now and then where a function of the library begins or ends, inline ones
 * too. So others come in between where two steps are close together (-finstrument-functions;
 * tests/fuzz/fuzz_build.sh delays). */
#include <sched.h>
#include <stdint.h>
#include <time.h>

#define UNSEEN __attribute__((no_instrument_function))

enum { SELDOM = 1024, SPINS = 3000 };

void __cyg_profile_func_enter(void *function, void *caller) UNSEEN;
void __cyg_profile_func_exit(void *function, void *caller) UNSEEN;
static void may_stop(void) UNSEEN;

static void may_stop(void)
{
    static __thread uint32_t state;
    if (state == 0) state = (uint32_t)(uintptr_t)&state | 1; /* another one in each thread */
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    if (state % SELDOM != 0) return;
    switch (state / SELDOM % 16) {
    case 0: nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); break;
    case 1:
    case 2:
    case 3: sched_yield(); break;
    default:
        for (volatile unsigned i = 0; i < SPINS; i++) continue;
    }
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)function;
    (void)caller;
    may_stop();
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
    may_stop();
}
