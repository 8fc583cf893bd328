/* SPDX-License-Identifier: Apache-2.0 */
/* script_forms: what a script does with texts of the web: fields of the query and of a body, text for HTML
 * and lines in the error log (mod_reap_lua(7)). */
#ifndef SCRIPT_FORMS_H
#define SCRIPT_FORMS_H

#include <lua.h>

/* Adds the calls to the table on top of the stack; may raise Lua's memory error. */
void script_forms_open(lua_State *L);

#endif
