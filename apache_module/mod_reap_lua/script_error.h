/* SPDX-License-Identifier: Apache-2.0 */
/* script_error: what the log says of a script that fails: one line, with the message and a traceback.
 *
 * The text is made in the request's pool, so it is there when Lua's memory is used up. An object that alone
 * exceeds the limit on memory has no traceback: Lua calls no handler then. Its line says where the script
 * was at the last look (script_limits).
 */
#ifndef SCRIPT_ERROR_H
#define SCRIPT_ERROR_H

#include <lua.h>

struct script;

/* A message handler: makes any value a string, and notes the traceback in the struct script. */
int script_error_describe(lua_State *L);

/* The whole text for the log, in the request's pool; the message is on top of the stack. */
const char *script_error_text(lua_State *L, const struct script *script);

#endif
