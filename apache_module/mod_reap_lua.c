/* SPDX-License-Identifier: Apache-2.0 */
/* mod_reap_lua: runs a Lua 5.4 script in a state whose memory is the request's pool.
 *
 * It stands for any program that uses malloc and free inside Apache (thesis 6.4.4, which had bc):
 * on stock pools its garbage stays until the request ends; on pools that can free single objects
 * (libreap-apr preloaded) the garbage goes back at once. In both cases nothing is left to tear down:
 * the state is never closed, it goes with the pool.
 *
 *     SetHandler reap-lua
 *     ReapLuaFree on|off          ReapLuaMaxMemory BYTES[K|M|G]
 *     ReapLuaReport on|off        ReapLuaMaxTime TIME
 *
 * Each request has a fresh state, so scripts share nothing, and any number run at once under the
 * threaded MPMs.
 */
#include "script.h"
#include "script_library.h"
#include "script_request.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <errno.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <httpd.h>
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

APLOG_USE_MODULE(reap_lua);
/* The build hides symbols; httpd looks this one up. */
extern module AP_MODULE_DECLARE_DATA reap_lua_module __attribute__((visibility("default")));

enum { UNSET = -1 };

static const apr_int64_t default_max_memory = 64 << 20;
static const apr_time_t default_max_time = 10 * APR_USEC_PER_SEC;

/* --- directives ---------------------------------------------------------------------------------- */

struct script_config {
    int may_free;
    int report;
    apr_int64_t max_memory; /* bytes; 0: no limit */
    apr_time_t max_time;    /* CPU time; 0: no limit */
};

static void *create_config(apr_pool_t *pool, char *directory)
{
    (void)directory;
    struct script_config *config = apr_palloc(pool, sizeof *config);
    *config = (struct script_config){UNSET, UNSET, UNSET, UNSET};
    return config;
}

static void *merge_config(apr_pool_t *pool, void *base_config, void *own_config)
{
    const struct script_config *base = base_config, *own = own_config;
    struct script_config *merged = apr_palloc(pool, sizeof *merged);
    merged->may_free = own->may_free != UNSET ? own->may_free : base->may_free;
    merged->report = own->report != UNSET ? own->report : base->report;
    merged->max_memory = own->max_memory != UNSET ? own->max_memory : base->max_memory;
    merged->max_time = own->max_time != UNSET ? own->max_time : base->max_time;
    return merged;
}

static struct script_config effective_config(const request_rec *request)
{
    struct script_config config =
        *(struct script_config *)ap_get_module_config(request->per_dir_config, &reap_lua_module);
    if (config.may_free == UNSET) config.may_free = 1;
    if (config.report == UNSET) config.report = 0;
    if (config.max_memory == UNSET) config.max_memory = default_max_memory;
    if (config.max_time == UNSET) config.max_time = default_max_time;
    return config;
}

static const char *set_max_memory(cmd_parms *cmd, void *own_config, const char *argument)
{
    static const char units[] = "KMG";
    struct script_config *config = own_config;
    char *end;
    errno = 0;
    config->max_memory = apr_strtoi64(argument, &end, 10);
    const char *unit = *end ? strchr(units, apr_toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (unit) end++;
    if (end == argument || *end || errno || config->max_memory < 0 ||
        config->max_memory > (APR_INT64_MAX >> shift))
        return apr_psprintf(cmd->pool, "%s: '%s' is not a number of bytes (as in 64M)", cmd->cmd->name,
                            argument);
    config->max_memory <<= shift;
    return NULL;
}

static const char *set_max_time(cmd_parms *cmd, void *own_config, const char *argument)
{
    struct script_config *config = own_config;
    apr_interval_time_t time;
    /* httpd's parser takes a word without digits for 0 */
    if (!apr_isdigit(*argument) || ap_timeout_parameter_parse(argument, &time, "s") != APR_SUCCESS ||
        time < 0)
        return apr_psprintf(cmd->pool, "%s: '%s' is not a time (as in 10s or 500ms)", cmd->cmd->name,
                            argument);
    config->max_time = time;
    return NULL;
}

#define OFFSET(field) ((void *)APR_OFFSETOF(struct script_config, field))

static const command_rec directives[] = {
    AP_INIT_FLAG(
        "ReapLuaFree", ap_set_flag_slot, OFFSET(may_free), RSRC_CONF | ACCESS_CONF,
        "on (the default): what a script drops goes back to the pool, where pools can free; off: it stays"),
    AP_INIT_FLAG("ReapLuaReport", ap_set_flag_slot, OFFSET(report), RSRC_CONF | ACCESS_CONF,
                 "on: response headers say how many bytes of the pool the script held; the default is off"),
    AP_INIT_TAKE1(
        "ReapLuaMaxMemory", set_max_memory, NULL, RSRC_CONF | ACCESS_CONF,
        "the most that a script may hold of the pool, in bytes or with K, M or G; 64M; 0: no limit"),
    AP_INIT_TAKE1("ReapLuaMaxTime", set_max_time, NULL, RSRC_CONF | ACCESS_CONF,
                  "the most CPU time that a script may use, as in 10s or 500ms; 10s; 0: no limit"),
    {.name = NULL}};

/* --- running ------------------------------------------------------------------------------------- */

static void log_traceback(lua_State *L, request_rec *request)
{
    luaL_traceback(L, L, NULL, 1);
    char *rest = apr_pstrdup(request->pool, lua_tostring(L, -1)), *line;
    while ((line = apr_strtok(rest, "\n", &rest)))
        ap_log_rerror(APLOG_MARK, APLOG_DEBUG, 0, request, "%s", line);
    lua_pop(L, 1);
}

/* The message handler: makes any error value a string. */
static int describe_error(lua_State *L)
{
    request_rec *request = script_of(L)->request;
    if (!lua_isstring(L, 1) && !luaL_getmetafield(L, 1, "__tostring"))
        lua_pushfstring(L, "%s: the error is a %s value", request->filename, luaL_typename(L, 1));
    else
        luaL_tolstring(L, 1, NULL);
    if (APLOGrdebug(request)) log_traceback(L, request);
    return 1;
}

static int load_script(lua_State *L, request_rec *request)
{
    int status = luaL_loadfilex(L, request->filename, "t");
    if (status == LUA_ERRFILE) script_of(L)->failed_status = HTTP_FORBIDDEN;
    return status;
}

/* Everything that may raise an error: called by lua_pcall. */
static int run_script(lua_State *L)
{
    script_library_open(L);
    script_request_open(L);
    script_time_start(L);
    if (load_script(L, script_of(L)->request) != LUA_OK) return lua_error(L);
    lua_call(L, 0, 0);
    return 0;
}

/* Lua's message; one about memory gets the figures. */
static const char *error_message(lua_State *L, const struct script *script)
{
    const struct script_memory *memory = &script->memory;
    const char *message = lua_tostring(L, -1);
    if (!strstr(message, "not enough memory")) return message;
    return apr_psprintf(script->request->pool, "%s: %s%s, %" APR_SIZE_T_FMT " bytes held%s",
                        script->request->filename, message, memory->refused ? " (ReapLuaMaxMemory)" : "",
                        memory->held, memory->frees ? "" : ", garbage included");
}

static void log_error(lua_State *L, const struct script *script)
{
    int level = script->client_gone ? APLOG_INFO : APLOG_ERR;
    ap_log_rerror(APLOG_MARK, level, 0, script->request, "%s", error_message(L, script));
}

/* --- ways to end --------------------------------------------------------------------------------- */

/* The headers have gone, so the client can only be told by a connection that breaks off: this bucket
 * keeps the chunked encoding from being ended properly. */
static int break_off(struct script *script)
{
    request_rec *request = script->request;
    request->connection->keepalive = AP_CONN_CLOSE;
    apr_bucket *broken =
        ap_bucket_error_create(HTTP_BAD_GATEWAY, NULL, request->pool, request->connection->bucket_alloc);
    APR_BRIGADE_INSERT_TAIL(script->output, broken);
    script_request_finish(script);
    return OK;
}

static int end_in_error(struct script *script)
{
    if (script->client_gone) return DONE;
    if (script->begun) return break_off(script);
    apr_brigade_cleanup(script->output);
    script->request->status = HTTP_OK; /* httpd takes another for an error of an error document */
    return script->failed_status ? script->failed_status : HTTP_INTERNAL_SERVER_ERROR;
}

static int end_well(struct script *script)
{
    int status = script->request->status;
    if (ap_is_HTTP_ERROR(status) && !script->wrote) { /* an error without a page: httpd has one */
        script->request->status = HTTP_OK;
        return status;
    }
    script_request_finish(script);
    return OK;
}

/* --- the handler --------------------------------------------------------------------------------- */

static int run(struct script *script)
{
    request_rec *request = script->request;
    lua_State *L = lua_newstate(script_memory_allocate, &script->memory);
    if (!L) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, request, "%s: not enough memory for a Lua state",
                      request->filename);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    script_attach(L, script);
    lua_pushcfunction(L, describe_error);
    lua_pushcfunction(L, run_script);
    int status = lua_pcall(L, 0, 0, 1);
    if (status != LUA_OK) log_error(L, script);
    script_request_report(script);
    return status == LUA_OK ? end_well(script) : end_in_error(script);
}

/* OK, or the status to decline with. */
static int check_request(request_rec *request)
{
    ap_allow_standard_methods(request, REPLACE_ALLOW, M_GET, M_POST, -1);
    if (request->method_number == M_OPTIONS) return DECLINED; /* httpd answers it */
    if (request->method_number != M_GET && request->method_number != M_POST) return HTTP_METHOD_NOT_ALLOWED;
    if (request->finfo.filetype == APR_NOFILE) return HTTP_NOT_FOUND;
    if (request->finfo.filetype != APR_REG) return HTTP_FORBIDDEN;
    return OK;
}

static int handler(request_rec *request)
{
    if (!request->handler || strcmp(request->handler, "reap-lua") != 0) return DECLINED;
    int status = check_request(request);
    if (status != OK) return status;
    struct script_config config = effective_config(request);
    struct script script = {.request = request, .reports = config.report, .time = {.limit = config.max_time}};
    script.output = apr_brigade_create(request->pool, request->connection->bucket_alloc);
    script_memory_init(&script.memory, request->pool, config.may_free, (size_t)config.max_memory);
    ap_set_content_type(request, "text/plain; charset=utf-8");
    return run(&script);
}

static int announce(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary, server_rec *server)
{
    (void)pool, (void)log, (void)temporary;
    ap_log_error(APLOG_MARK, APLOG_INFO, 0, server, "mod_reap_lua: %s, on pools that %s", LUA_RELEASE,
                 script_memory_pools_free() ? "free single objects"
                                            : "keep everything until they are cleared");
    return OK;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_post_config(announce, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA reap_lua_module = {
    STANDARD20_MODULE_STUFF, create_config, merge_config, NULL, NULL, directives, register_hooks, 0};
