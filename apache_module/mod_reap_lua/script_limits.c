/* SPDX-License-Identifier: Apache-2.0 */
#include "script_limits.h"
#include "script.h"

#include <lauxlib.h>
#include <string.h>
#include <time.h>

enum {
    BETWEEN_LOOKS = 10000, /* instructions, some 0.2 ms; a look is a system call */
    IN_A_COROUTINE = 1000
};

static apr_time_t thread_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return apr_time_from_sec(now.tv_sec) + now.tv_nsec / 1000;
}

static bool is_limited(const struct script_limits *limits)
{
    return limits->max_time != 0 || limits->max_instructions != 0;
}

static void hook(lua_State *L, lua_Debug *where);

/* Raises the error of a limit, now and at each further instruction of this thread. */
static void refuse(lua_State *L)
{
    struct script_limits *limits = &script_of(L)->limits;
    lua_sethook(L, hook, LUA_MASKCOUNT, 1);
    luaL_where(L, 0);
    if (limits->over == NO_TIME)
        lua_pushfstring(L, "the script has used its %d ms of CPU time (ReapLuaMaxTime)",
                        (int)apr_time_as_msec(limits->max_time));
    else
        lua_pushfstring(L, "the script has used its %I instructions (ReapLuaMaxInstructions)",
                        (LUAI_UACINT)limits->max_instructions);
    lua_concat(L, 2);
    lua_error(L);
}

static void look(lua_State *L)
{
    struct script_limits *limits = &script_of(L)->limits;
    limits->charged = 0;
    if (limits->max_instructions != 0 && limits->instructions > limits->max_instructions)
        limits->over = NO_INSTRUCTIONS;
    else if (limits->max_time != 0 && thread_time() >= limits->deadline)
        limits->over = NO_TIME;
    if (limits->over) refuse(L);
}

static void set_hook(lua_State *L, const struct script *script)
{
    if (is_limited(&script->limits))
        lua_sethook(L, hook, LUA_MASKCOUNT, L == script->main ? BETWEEN_LOOKS : IN_A_COROUTINE);
    else
        lua_sethook(L, NULL, 0, 0);
}

static void note_place(lua_State *L, lua_Debug *where, struct script_limits *limits)
{
    lua_getinfo(L, "Sl", where);
    memcpy(limits->source, where->short_src, sizeof limits->source);
    limits->line = where->currentline;
}

static void hook(lua_State *L, lua_Debug *where)
{
    struct script *script = script_of(L);
    int count = lua_gethookcount(L);
    note_place(L, where, &script->limits);
    if (script->limits.over) refuse(L);
    script->limits.instructions += count;
    if (count == 1) set_hook(L, script); /* the allocator had asked */
    script_memory_look(L, &script->memory);
    look(L);
}

void script_limits_start(lua_State *L)
{
    struct script *script = script_of(L);
    struct script_limits *limits = &script->limits;
    limits->running = L;
    limits->deadline = limits->max_time != 0 ? thread_time() + limits->max_time : 0;
    set_hook(L, script);
}

void script_limits_watch(lua_State *L, lua_State *coroutine) { set_hook(coroutine, script_of(L)); }

void script_limits_charge(lua_State *L, lua_Integer instructions)
{
    struct script_limits *limits = &script_of(L)->limits;
    if (!is_limited(limits)) return;
    if (limits->over) refuse(L);
    limits->instructions += instructions;
    limits->charged += instructions;
    if (limits->charged >= BETWEEN_LOOKS) look(L);
}

void script_limits_hurry(struct script_limits *limits)
{
    limits->instructions += BETWEEN_LOOKS;
    if (limits->running) lua_sethook(limits->running, hook, LUA_MASKCOUNT, 1);
}
