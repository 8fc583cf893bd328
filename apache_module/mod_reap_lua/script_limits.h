/* SPDX-License-Identifier: Apache-2.0 */
/* script_limits: the limits on the CPU time and on the instructions of one script.
 *
 * A look compares both with their limits. An instruction hook looks each 10000 instructions of a thread of
 * Lua's, a charge looks after as many, and the allocator asks for one after each megabyte, because one
 * instruction can copy all of a script's memory: it counts as 10000. Time is what the thread computes, and
 * not what it waits. A C function of Lua's that runs on without memory (a pattern with many repetitions)
 * meets no hook.
 *
 * Once a limit is met each further instruction is an error, in whichever coroutine.
 */
#ifndef SCRIPT_LIMITS_H
#define SCRIPT_LIMITS_H

#include <apr_time.h>
#include <lua.h>
#include <stdbool.h>

struct script_limits {
    apr_time_t max_time;          /* CPU time; 0: none */
    apr_int64_t max_instructions; /* 0: none */
    apr_time_t deadline;          /* of the thread's CPU clock */
    apr_int64_t instructions;     /* so far, those of a coroutine rounded up */
    apr_int64_t charged;          /* since the last look, without a hook */
    lua_State *running;           /* the coroutine that runs, or the main thread; NULL before the start */
    char source[LUA_IDSIZE];      /* where the script was at the last look by a hook */
    int line;                     /* 0: no look yet */
    enum { NOT_OVER, NO_TIME, NO_INSTRUCTIONS } over;
};

/* Starts the clock. The script's struct script (script.h) must be in place. */
void script_limits_start(lua_State *L);

/* Sets the hook of a new coroutine, which looks oftener: a script can leave it before its hook. */
void script_limits_watch(lua_State *L, lua_State *coroutine);

/* Counts work that C does for a script as this number of instructions. Raises the error of a limit. */
void script_limits_charge(lua_State *L, lua_Integer instructions);

/* Counts a megabyte, and has the running thread look at its next instruction. Raises nothing. */
void script_limits_hurry(struct script_limits *limits);

#endif
