/* SPDX-License-Identifier: Apache-2.0 */
#include "script_forms.h"
#include "script.h"

#include <apr_lib.h>
#include <http_log.h>
#include <lauxlib.h>
#include <string.h>

APLOG_USE_MODULE(reap_lua);

static int digit_of(int c)
{
    return apr_isdigit(c) ? c - '0' : apr_isxdigit(c) ? apr_tolower(c) - 'a' + 10 : -1;
}

/* Pushes the text with its escapes undone; a % that begins no escape stays. */
static void push_decoded(lua_State *L, const char *text, const char *end)
{
    luaL_Buffer decoded;
    luaL_buffinit(L, &decoded);
    for (; text < end; text++) {
        int high = *text == '%' && end - text > 2 ? digit_of((unsigned char)text[1]) : -1;
        int low = high >= 0 ? digit_of((unsigned char)text[2]) : -1;
        if (low >= 0) text += 2;
        luaL_addchar(&decoded, (char)(low >= 0 ? high * 16 + low : *text == '+' ? ' ' : *text));
    }
    luaL_pushresult(&decoded);
}

/* Adds name and value, the top of the stack, to the tables below them, and pops them. */
static void add_field(lua_State *L)
{
    int first = lua_gettop(L) - 3, all = first + 1, name = first + 2, value = first + 3;
    lua_pushvalue(L, name);
    if (lua_rawget(L, all) == LUA_TNIL) {
        lua_pushvalue(L, name);
        lua_pushvalue(L, value);
        lua_rawset(L, first);
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, name);
        lua_pushvalue(L, -2);
        lua_rawset(L, all);
        lua_replace(L, -2);
    }
    lua_pushvalue(L, value);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_settop(L, all);
}

/* Pushes the two tables. The text must stay in its place. */
static int push_fields(lua_State *L, const char *text, size_t size)
{
    const char *end = text + size;
    lua_newtable(L);
    lua_newtable(L);
    while (text < end) {
        const char *next = memchr(text, '&', (size_t)(end - text));
        if (!next) next = end;
        const char *equals = memchr(text, '=', (size_t)(next - text));
        if (next > text) {
            push_decoded(L, text, equals ? equals : next);
            push_decoded(L, equals ? equals + 1 : next, next);
            add_field(L);
        }
        text = next + 1;
    }
    return 2;
}

static int parse_args(lua_State *L)
{
    const char *args = script_of(L)->request->args;
    return push_fields(L, args ? args : "", args ? strlen(args) : 0);
}

static int parse_body(lua_State *L)
{
    size_t size;
    lua_settop(L, 1);
    lua_getfield(L, 1, "requestbody");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    const char *body = luaL_checklstring(L, 2, &size);
    return push_fields(L, body, size);
}

static int escape_html(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 2, &size);
    luaL_Buffer escaped;
    luaL_buffinit(L, &escaped);
    for (const char *end = text + size; text < end; text++) {
        switch (*text) {
        case '<': luaL_addstring(&escaped, "&lt;"); break;
        case '>': luaL_addstring(&escaped, "&gt;"); break;
        case '&': luaL_addstring(&escaped, "&amp;"); break;
        case '"': luaL_addstring(&escaped, "&quot;"); break;
        case '\'': luaL_addstring(&escaped, "&#39;"); break;
        default: luaL_addchar(&escaped, *text);
        }
    }
    luaL_pushresult(&escaped);
    return 1;
}

/* Upvalue: the level. The log escapes what is no text. */
static int log_text(lua_State *L)
{
    int level = (int)lua_tointeger(L, lua_upvalueindex(1));
    const char *text = luaL_checkstring(L, 2);
    ap_log_rerror(APLOG_MARK, level, 0, script_of(L)->request, "%s", text);
    return 0;
}

void script_forms_open(lua_State *L)
{
    static const luaL_Reg calls[] = {
        {"parseargs", parse_args}, {"parsebody", parse_body}, {"escape_html", escape_html}, {NULL, NULL}};
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"err", APLOG_ERR},
                  {"warn", APLOG_WARNING},
                  {"notice", APLOG_NOTICE},
                  {"info", APLOG_INFO},
                  {"debug", APLOG_DEBUG}};
    luaL_setfuncs(L, calls, 0);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        lua_pushinteger(L, levels[i].level);
        lua_pushcclosure(L, log_text, 1);
        lua_setfield(L, -2, levels[i].name);
    }
}
