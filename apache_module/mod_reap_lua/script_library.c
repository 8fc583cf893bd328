/* SPDX-License-Identifier: Apache-2.0 */
#include "script_library.h"
#include "script.h"

#include <lauxlib.h>
#include <lualib.h>

enum { LONGEST_TABLE = 100000000, INSTRUCTIONS_OF_A_RESUME = 1000 };

/* After a yield inside of the function, Lua goes on here. */
static int finish(lua_State *L, int status, lua_KContext context)
{
    (void)status, (void)context;
    return lua_gettop(L);
}

/* Calls the upvalue, as a rule the standard function, with the arguments on the stack. */
static int call_standard(lua_State *L)
{
    int arguments = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_callk(L, arguments, LUA_MULTRET, 0, finish);
    return lua_gettop(L);
}

/* load(chunk, name, mode, env): the mode becomes "t". */
static int load_text(lua_State *L)
{
    if (lua_gettop(L) < 3) lua_settop(L, 3);
    lua_pushliteral(L, "t");
    lua_replace(L, 3);
    return call_standard(L);
}

static int setmetatable_without_gc(lua_State *L)
{
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL) return luaL_error(L, "a script in the server cannot have __gc");
        lua_pop(L, 1);
    }
    return call_standard(L);
}

/* The script's message handler, the upvalue, unless the error is that time is over: that one is raised
 * in a hook, where hooks are off, and an endless handler could not be ended. */
static int handle_message(lua_State *L)
{
    if (script_of(L)->limits.over) return 1;
    return call_standard(L);
}

/* xpcall(function, handler, ...) */
static int xpcall_in_time(lua_State *L)
{
    luaL_checkany(L, 2);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, handle_message, 1);
    lua_replace(L, 2);
    return call_standard(L);
}

/* A collection goes through all that the script holds. */
static int collect_charged(lua_State *L)
{
    script_limits_charge(L, (lua_Integer)script_of(L)->memory.held / 64);
    return call_standard(L);
}

/* string.rep(s, n, separator): nothing n times is no loop of n rounds. */
static int repeat(lua_State *L)
{
    size_t size, separator;
    luaL_checklstring(L, 1, &size);
    luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &separator);
    if (size != 0 || separator != 0) return call_standard(L);
    lua_pushliteral(L, "");
    return 1;
}

/* table.move(from, first, last, to, table) */
static int move(lua_State *L)
{
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
    lua_Integer distance;
    if (last < first)
        distance = 0;
    else if (__builtin_sub_overflow(last, first, &distance) || distance > LONGEST_TABLE)
        return luaL_argerror(L, 3, "too many elements to move");
    script_limits_charge(L, distance);
    return call_standard(L);
}

/* table.insert and table.remove go through a table whose length a metatable tells. */
static int check_length(lua_State *L)
{
    if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL) {
        lua_pop(L, 1);
        lua_Integer length = luaL_len(L, 1);
        if (length > LONGEST_TABLE) return luaL_argerror(L, 1, "the table is too long");
        if (length > 0) script_limits_charge(L, length);
    }
    return call_standard(L);
}

/* --- coroutines ---------------------------------------------------------------------------------- */

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

/* --- interface ----------------------------------------------------------------------------------- */

/* In the table on top of the stack. */
static void replace(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

void script_library_open(lua_State *L)
{
    static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_MATHLIBNAME, luaopen_math},
                                         {LUA_UTF8LIBNAME, luaopen_utf8},
                                         {LUA_COLIBNAME, luaopen_coroutine},
                                         {NULL, NULL}};
    for (const luaL_Reg *library = libraries; library->name; library++) {
        luaL_requiref(L, library->name, library->func, 1);
        lua_pop(L, 1);
    }
    lua_pushglobaltable(L);
    lua_pushnil(L);
    lua_setfield(L, -2, "dofile");
    lua_pushnil(L);
    lua_setfield(L, -2, "loadfile");
    replace(L, "load", load_text);
    replace(L, "xpcall", xpcall_in_time);
    replace(L, "setmetatable", setmetatable_without_gc);
    replace(L, "collectgarbage", collect_charged);
    lua_getfield(L, -1, LUA_STRLIBNAME);
    replace(L, "rep", repeat);
    lua_getfield(L, -2, LUA_TABLIBNAME);
    replace(L, "move", move);
    replace(L, "insert", check_length);
    replace(L, "remove", check_length);
    lua_getfield(L, -3, LUA_COLIBNAME);
    replace(L, "create", create);
    replace(L, "wrap", wrap);
    replace(L, "resume", resume);
    lua_pop(L, 4);
}
