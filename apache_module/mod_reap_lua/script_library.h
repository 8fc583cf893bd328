/* SPDX-License-Identifier: Apache-2.0 */
/* script_library: what of Lua's standard library a script in the server gets.
 *
 * string, table, math, utf8, coroutine and the basic functions, with these differences:
 *   dofile, loadfile  absent: they read any file that the server may read. So are io, os, package and
 *                     debug: files, processes, shared objects, and ways around the limits.
 *   load              takes text only: made-up byte code can crash the interpreter.
 *   setmetatable      refuses a metatable with __gc: finalizers run with hooks off, so an endless one
 *                     could not be ended; and the state goes with its pool, without a last collection.
 *   xpcall            calls no message handler once time is over: it would run with hooks off.
 *   string.rep, table.move, table.insert, table.remove, collectgarbage
 *                     count as the instructions that their work takes: C code meets no hook.
 *   coroutine         Lua's hooks are a thread's: each coroutine gets the hook, and each resume counts as the
 *                     instructions that it can run before its hook, so that nested ones stretch no limit.
 */
#ifndef SCRIPT_LIBRARY_H
#define SCRIPT_LIBRARY_H

#include <lua.h>

/* Opens it in a state with a struct script; may raise Lua's memory error. */
void script_library_open(lua_State *L);

#endif
