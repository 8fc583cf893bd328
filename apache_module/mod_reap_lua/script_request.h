/* SPDX-License-Identifier: Apache-2.0 */
/* script_request: the request as a script sees it: the global `r`, and print.
 *
 *   read        r.method, r.uri, r.args, r.path_info, r.protocol, r.hostname, r.useragent_ip, r.user,
 *               r.filename, r.the_request; r.headers_in["Name"], in any case of letters
 *   read, set   r.status, r.content_type, r.headers_out["Name"]
 *   calls       r:write(...) (also r:puts), r:flush(), r:requestbody(); print(...); those of script_forms
 *   pairs       of r.headers_in and r.headers_out
 *
 * The names are mod_lua's where the meaning is the same. Output is buffered, 8000 bytes of it, and
 * until the first of it leaves, the script may still fail with a clean error response.
 */
#ifndef SCRIPT_REQUEST_H
#define SCRIPT_REQUEST_H

#include "script.h"

/* Sets the globals r and print; may raise Lua's memory error. */
void script_request_open(lua_State *L);

/* Notes what the script holds of the pool, and the most that it held: reap-lua-held and reap-lua-peak in
 * the request's notes, and with ReapLuaReport two response headers, if the response has not begun. The
 * headers are as of its beginning, the notes as of the script's end. */
void script_request_report(struct script *script);

/* Passes on what was written, and the end of the response. */
void script_request_finish(struct script *script);

#endif
