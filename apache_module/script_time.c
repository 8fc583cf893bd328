/* SPDX-License-Identifier: Apache-2.0 */
/* script_time: see the header. */
#include "script_time.h"
#include "script.h"

#include <lauxlib.h>
#include <time.h>

enum { INSTRUCTIONS_BETWEEN_LOOKS = 10000 }; /* some 0.2 ms; a look is a system call */

static apr_time_t thread_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return apr_time_from_sec(now.tv_sec) + now.tv_nsec / 1000;
}

/* Once time is over every instruction is an error, so that a script that catches this one gets no
 * further. */
static void look(lua_State *L, lua_Debug *where)
{
    (void)where;
    struct script_time *time = &script_of(L)->time;
    if (thread_time() < time->deadline) return;
    time->over = true;
    lua_sethook(L, look, LUA_MASKCOUNT, 1);
    luaL_where(L, 0);
    lua_pushfstring(L, "the script has used its %d ms of CPU time (ReapLuaMaxTime)",
                    (int)apr_time_as_msec(time->limit));
    lua_concat(L, 2);
    lua_error(L);
}

void script_time_start(lua_State *L)
{
    struct script_time *time = &script_of(L)->time;
    if (time->limit == 0) return;
    time->deadline = thread_time() + time->limit;
    lua_sethook(L, look, LUA_MASKCOUNT, INSTRUCTIONS_BETWEEN_LOOKS);
}
