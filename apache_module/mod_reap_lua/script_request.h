/* SPDX-License-Identifier: Apache-2.0 */
/* script_request: the request as a script sees it: the global `r`, and print (mod_reap_lua(7)).
 *
 * Output is buffered, 8000 bytes of it: until the first of it leaves, the script may still fail with a clean
 * error response.
 */
#ifndef SCRIPT_REQUEST_H
#define SCRIPT_REQUEST_H

#include "script.h"

/* Sets the globals r and print; may raise Lua's memory error. */
void script_request_open(lua_State *L);

/* Notes what the script holds of the pool, and the most that it held; in headers too, with ReapLuaReport,
 * if the response has not begun. */
void script_request_report(struct script *script);

/* Passes on what was written, and the end of the response. */
void script_request_finish(struct script *script);

#endif
