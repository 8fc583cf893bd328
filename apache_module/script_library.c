/* SPDX-License-Identifier: Apache-2.0 */
/* script_library: see the header. */
#include "script_library.h"
#include "script.h"

#include <lauxlib.h>
#include <lualib.h>

/* Calls the upvalue, as a rule the standard function, with the arguments on the stack. */
static int call_standard(lua_State *L)
{
    int arguments = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, arguments, LUA_MULTRET);
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
    if (script_of(L)->time.over) return 1;
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

static void replace_global(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getglobal(L, name);
    lua_pushcclosure(L, function, 1);
    lua_setglobal(L, name);
}

static void remove_global(lua_State *L, const char *name)
{
    lua_pushnil(L);
    lua_setglobal(L, name);
}

void script_library_open(lua_State *L)
{
    static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},       {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_TABLIBNAME, luaopen_table}, {LUA_MATHLIBNAME, luaopen_math},
                                         {LUA_UTF8LIBNAME, luaopen_utf8}, {NULL, NULL}};
    for (const luaL_Reg *library = libraries; library->name; library++) {
        luaL_requiref(L, library->name, library->func, 1);
        lua_pop(L, 1);
    }
    remove_global(L, "dofile");
    remove_global(L, "loadfile");
    replace_global(L, "load", load_text);
    replace_global(L, "xpcall", xpcall_in_time);
    replace_global(L, "setmetatable", setmetatable_without_gc);
}
