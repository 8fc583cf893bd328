/* SPDX-License-Identifier: Apache-2.0 */
/* script_forms: what a script does with texts of the web.
 *
 *   r:parseargs(), r:parsebody()   fields of the query and of a body as forms send it: a table with the first
 *                                  value of each name, and one with an array of all its values
 *   r:escape_html(text)            for HTML
 *   r:err(...), r:warn(...), r:notice(...), r:info(...), r:debug(...)
 *                                  a line in the error log, at that level
 */
#ifndef SCRIPT_FORMS_H
#define SCRIPT_FORMS_H

#include <lua.h>

/* Adds the calls to the table on top of the stack; may raise Lua's memory error. */
void script_forms_open(lua_State *L);

#endif
