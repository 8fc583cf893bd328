/* SPDX-License-Identifier: Apache-2.0 */
/* script_coroutine: coroutines within the limits of their script.
 *
 * Lua's hooks are a thread's. So each coroutine gets the hook, and each resume is charged with the
 * instructions that the coroutine can run before its hook: nested coroutines stretch no limit.
 */
#ifndef SCRIPT_COROUTINE_H
#define SCRIPT_COROUTINE_H

#include <lua.h>

/* Replaces functions of the global coroutine; may raise Lua's memory error. */
void script_coroutine_open(lua_State *L);

#endif
