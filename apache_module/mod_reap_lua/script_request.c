/* SPDX-License-Identifier: Apache-2.0 */
#include "script_request.h"
#include "script_forms.h"

#include <apr_buckets.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <http_protocol.h>
#include <lauxlib.h>
#include <string.h>
#include <util_filter.h>

/* --- output -------------------------------------------------------------------------------------- */

void script_request_report(struct script *script)
{
    request_rec *request = script->request;
    char *held = apr_psprintf(request->pool, "%" APR_SIZE_T_FMT, script->memory.held);
    char *peak = apr_psprintf(request->pool, "%" APR_SIZE_T_FMT, script->memory.peak);
    apr_table_setn(request->notes, "reap-lua-held", held);
    apr_table_setn(request->notes, "reap-lua-peak", peak);
    if (script->begun || !script->reports) return;
    apr_table_setn(request->err_headers_out, "X-Reap-Bytes-Held", held);
    apr_table_setn(request->err_headers_out, "X-Reap-Peak", peak);
    apr_table_setn(request->err_headers_out, "X-Reap-Script", script->cached ? "cached" : "compiled");
}

/* An apr_brigade_flush: httpd's own does not tell us that the response has begun. */
static apr_status_t pass_on(apr_bucket_brigade *output, void *self)
{
    struct script *script = self;
    if (!script->begun) script_request_report(script);
    script->begun = true;
    apr_status_t status = ap_pass_brigade(script->request->output_filters, output);
    apr_brigade_cleanup(output);
    return status;
}

static void check_delivery(lua_State *L, apr_status_t status)
{
    if (status == APR_SUCCESS && !script_of(L)->request->connection->aborted) return;
    script_of(L)->client_gone = true;
    luaL_error(L, "the client has gone");
}

static void write_bytes(lua_State *L, const char *bytes, size_t size)
{
    struct script *script = script_of(L);
    if (size == 0) return;
    script->wrote = true;
    check_delivery(L, apr_brigade_write(script->output, pass_on, script, bytes, size));
}

static int print(lua_State *L)
{
    int values = lua_gettop(L);
    for (int i = 1; i <= values; i++) {
        size_t size;
        const char *text = luaL_tolstring(L, i, &size);
        if (i > 1) write_bytes(L, "\t", 1);
        write_bytes(L, text, size);
        lua_pop(L, 1);
    }
    write_bytes(L, "\n", 1);
    return 0;
}

/* r:write(...): strings and numbers, nothing in between. */
static int request_write(lua_State *L)
{
    int values = lua_gettop(L);
    for (int i = 2; i <= values; i++) {
        size_t size;
        const char *text = luaL_checklstring(L, i, &size);
        write_bytes(L, text, size);
    }
    return 0;
}

static int request_flush(lua_State *L)
{
    struct script *script = script_of(L);
    apr_bucket *flush = apr_bucket_flush_create(script->request->connection->bucket_alloc);
    APR_BRIGADE_INSERT_TAIL(script->output, flush);
    check_delivery(L, pass_on(script->output, script));
    return 0;
}

void script_request_finish(struct script *script)
{
    apr_bucket *end = apr_bucket_eos_create(script->request->connection->bucket_alloc);
    APR_BRIGADE_INSERT_TAIL(script->output, end);
    if (pass_on(script->output, script) != APR_SUCCESS) script->client_gone = true;
}

/* --- the request's body -------------------------------------------------------------------------- */

static int body_error(lua_State *L, int status)
{
    script_of(L)->failed_status = status;
    return luaL_error(L, "the request's body cannot be read");
}

/* r:requestbody(): all of it at the first call, "" after that. */
static int request_body(lua_State *L)
{
    request_rec *request = script_of(L)->request;
    luaL_Buffer body;
    luaL_buffinit(L, &body);
    if (!request->read_length) {
        int status = ap_setup_client_block(request, REQUEST_CHUNKED_DECHUNK);
        if (status != OK) return body_error(L, status);
        if (ap_should_client_block(request)) {
            long got;
            while ((got = ap_get_client_block(request, luaL_prepbuffer(&body), LUAL_BUFFERSIZE)) > 0)
                luaL_addsize(&body, (size_t)got);
            if (got < 0) return body_error(L, HTTP_BAD_REQUEST);
        }
    }
    luaL_pushresult(&body);
    return 1;
}

/* --- headers ------------------------------------------------------------------------------------- */

static void check_not_begun(lua_State *L)
{
    if (script_of(L)->begun) luaL_error(L, "the response has begun: its headers cannot change");
}

static int push_header(lua_State *L, apr_table_t *headers)
{
    lua_pushstring(L, apr_table_get(headers, luaL_checkstring(L, 2))); /* nil for NULL */
    return 1;
}

static int headers_in_index(lua_State *L) { return push_header(L, script_of(L)->request->headers_in); }

static int headers_out_index(lua_State *L) { return push_header(L, script_of(L)->request->headers_out); }

/* next(headers, name): upvalue 1 is the table of APR's, upvalue 2 the index of the next element. */
static int next_header(lua_State *L)
{
    const apr_array_header_t *elements = apr_table_elts(lua_touserdata(L, lua_upvalueindex(1)));
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
    if (i >= elements->nelts) return 0;
    const apr_table_entry_t *element = (const apr_table_entry_t *)elements->elts + i;
    lua_pushinteger(L, i + 1);
    lua_replace(L, lua_upvalueindex(2));
    lua_pushstring(L, element->key);
    lua_pushstring(L, element->val);
    return 2;
}

static int push_iterator(lua_State *L, apr_table_t *headers)
{
    lua_pushlightuserdata(L, headers);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_header, 2);
    return 1;
}

static int headers_in_pairs(lua_State *L) { return push_iterator(L, script_of(L)->request->headers_in); }

static int headers_out_pairs(lua_State *L) { return push_iterator(L, script_of(L)->request->headers_out); }

/* A script that puts foreign text into a header must not send headers of a stranger's, or a body. */
static void check_header(lua_State *L, int index)
{
    size_t size;
    const char *text = luaL_checklstring(L, index, &size);
    for (size_t i = 0; i < size; i++)
        if ((apr_iscntrl(text[i]) && text[i] != '\t') ||
            (index == 2 && strchr(" \t()<>@,;:\\\"/[]?={}", text[i])))
            luaL_argerror(L, index,
                          index == 2 ? "no name of a header" : "a header has no control characters");
    if (index == 2 && size == 0) luaL_argerror(L, index, "no name of a header");
}

/* A copy that outlives the state's garbage collection. */
static const char *keep_string(lua_State *L, int index)
{
    check_header(L, index);
    const char *copy = script_memory_strdup(&script_of(L)->memory, luaL_checkstring(L, index));
    if (!copy) luaL_error(L, "not enough memory");
    return copy;
}

static int headers_out_newindex(lua_State *L)
{
    apr_table_t *headers = script_of(L)->request->headers_out;
    check_not_begun(L);
    if (lua_isnil(L, 3))
        apr_table_unset(headers, luaL_checkstring(L, 2));
    else
        apr_table_setn(headers, keep_string(L, 2), keep_string(L, 3));
    return 0;
}

/* --- fields -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset; /* of a char * in request_rec */
} string_fields[] = {
    {"method", offsetof(request_rec, method)},
    {"uri", offsetof(request_rec, uri)},
    {"args", offsetof(request_rec, args)},
    {"path_info", offsetof(request_rec, path_info)},
    {"protocol", offsetof(request_rec, protocol)},
    {"hostname", offsetof(request_rec, hostname)},
    {"useragent_ip", offsetof(request_rec, useragent_ip)},
    {"user", offsetof(request_rec, user)},
    {"filename", offsetof(request_rec, filename)},
    {"the_request", offsetof(request_rec, the_request)},
    {"content_type", offsetof(request_rec, content_type)},
};

static int request_index(lua_State *L)
{
    request_rec *request = script_of(L)->request;
    const char *name = luaL_checkstring(L, 2);
    if (strcmp(name, "status") == 0) {
        lua_pushinteger(L, request->status);
        return 1;
    }
    for (size_t i = 0; i < sizeof string_fields / sizeof *string_fields; i++) {
        if (strcmp(name, string_fields[i].name) != 0) continue;
        lua_pushstring(L, *(const char **)((char *)request + string_fields[i].offset));
        return 1;
    }
    return 0;
}

static int request_newindex(lua_State *L)
{
    request_rec *request = script_of(L)->request;
    const char *name = luaL_checkstring(L, 2);
    check_not_begun(L);
    if (strcmp(name, "status") == 0) {
        lua_Integer status = luaL_checkinteger(L, 3);
        luaL_argcheck(L, status >= 200 && status <= 599, 3, "a status is from 200 to 599");
        request->status = (int)status;
    } else if (strcmp(name, "content_type") == 0) {
        ap_set_content_type(request, keep_string(L, 3));
    } else {
        return luaL_error(L, "r.%s cannot be set", name);
    }
    return 0;
}

/* Gives the table on top of the stack a metatable. */
static void set_access(lua_State *L, lua_CFunction index, lua_CFunction newindex, lua_CFunction pairs)
{
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, index);
    lua_setfield(L, -2, "__index");
    if (newindex) {
        lua_pushcfunction(L, newindex);
        lua_setfield(L, -2, "__newindex");
    }
    if (pairs) {
        lua_pushcfunction(L, pairs);
        lua_setfield(L, -2, "__pairs");
    }
    lua_setmetatable(L, -2);
}

static int refuse_newindex(lua_State *L) { return luaL_error(L, "the request's headers cannot be set"); }

void script_request_open(lua_State *L)
{
    static const luaL_Reg calls[] = {{"write", request_write},
                                     {"puts", request_write},
                                     {"flush", request_flush},
                                     {"requestbody", request_body},
                                     {NULL, NULL}};
    luaL_newlib(L, calls);
    script_forms_open(L);
    lua_newtable(L);
    set_access(L, headers_in_index, refuse_newindex, headers_in_pairs);
    lua_setfield(L, -2, "headers_in");
    lua_newtable(L);
    set_access(L, headers_out_index, headers_out_newindex, headers_out_pairs);
    lua_setfield(L, -2, "headers_out");
    set_access(L, request_index, request_newindex, NULL);
    lua_setglobal(L, "r");
    lua_register(L, "print", print);
}
