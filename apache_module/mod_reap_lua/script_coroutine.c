/* SPDX-License-Identifier: Apache-2.0 */
/* script_coroutine: see the header. */
#include "script_coroutine.h"
#include "script.h"

#include <lauxlib.h>
#include <lualib.h>

enum { INSTRUCTIONS_OF_A_RESUME = 1000 };

/* Calls upvalue 1 with the arguments on the stack. The coroutine runs meanwhile. */
static int run_in(lua_State *L, lua_State *coroutine)
{
    struct script_limits *limits = &script_of(L)->limits;
    script_limits_charge(L, INSTRUCTIONS_OF_A_RESUME);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    if (coroutine) limits->running = coroutine;
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    limits->running = L;
    if (limits->over) script_limits_charge(L, 0); /* raises its error */
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* coroutine.resume(coroutine, ...) */
static int resume(lua_State *L) { return run_in(L, lua_tothread(L, 1)); }

/* A function of coroutine.wrap. */
static int resume_wrapped(lua_State *L) { return run_in(L, lua_tothread(L, lua_upvalueindex(2))); }

/* Calls upvalue 1, coroutine.create or coroutine.wrap, with the function. */
static void make(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
}

static int create(lua_State *L)
{
    make(L);
    script_limits_watch(L, lua_tothread(L, -1));
    return 1;
}

static int wrap(lua_State *L)
{
    make(L);
    lua_getupvalue(L, -1, 1); /* the thread */
    if (lua_isthread(L, -1)) script_limits_watch(L, lua_tothread(L, -1));
    lua_pushcclosure(L, resume_wrapped, 2);
    return 1;
}

static void replace(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

void script_coroutine_open(lua_State *L)
{
    lua_getglobal(L, LUA_COLIBNAME);
    replace(L, "create", create);
    replace(L, "wrap", wrap);
    replace(L, "resume", resume);
    lua_pop(L, 1);
}
