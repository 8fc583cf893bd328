/* SPDX-License-Identifier: Apache-2.0 */
/* script_time: the limit on the CPU time of one script.
 *
 * An instruction hook reads the thread's clock. Time is what the thread computes: a script that waits
 * for a slow client does no harm, and httpd's Timeout watches over it. A C function of Lua's library
 * that runs on for long (a pattern with many repetitions, table.move over 2^60 places) meets no hook.
 */
#ifndef SCRIPT_TIME_H
#define SCRIPT_TIME_H

#include <apr_time.h>
#include <lua.h>
#include <stdbool.h>

struct script_time {
    apr_time_t limit;    /* 0: none */
    apr_time_t deadline; /* of the thread's CPU clock */
    bool over;           /* each further instruction is an error */
};

/* Starts the clock. The script's struct script (script.h) must be in place. */
void script_time_start(lua_State *L);

#endif
