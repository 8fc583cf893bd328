/* SPDX-License-Identifier: Apache-2.0 */
/* mod_reap_lua: runs a Lua 5.4 script in a state whose memory is the request's pool.
 *
 * It stands for any program that uses malloc and free inside Apache (thesis 6.4.4, which had bc). The state
 * is never closed: it goes with the pool.
 *
 * Each request has a fresh state, so scripts share nothing, and any number run at once under the
 * threaded MPMs. What they share is byte code (script_cache).
 */
#include "script.h"
#include "script_cache.h"
#include "script_error.h"
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
#include <lauxlib.h>
#include <string.h>

APLOG_USE_MODULE(reap_lua);
/* The build hides symbols; httpd looks this one up. */
extern module AP_MODULE_DECLARE_DATA reap_lua_module __attribute__((visibility("default")));

enum { UNSET = -1 };

static const apr_int64_t default_cache = 4 << 20;

/* --- directives ---------------------------------------------------------------------------------- */

struct script_config {
    int may_free;
    int report;
    int debug;
    apr_int64_t max_memory;       /* bytes; 0: no limit */
    apr_int64_t max_instructions; /* 0: no limit */
    apr_time_t max_time;          /* CPU time; 0: no limit */
};

static apr_int64_t cache_size; /* bytes, of each process; 0: no cache */

static void *create_config(apr_pool_t *pool, char *directory)
{
    (void)directory;
    struct script_config *config = apr_palloc(pool, sizeof *config);
    *config = (struct script_config){UNSET, UNSET, UNSET, UNSET, UNSET, UNSET};
    return config;
}

#define MERGE(field) merged->field = own->field != UNSET ? own->field : base->field

static void *merge_config(apr_pool_t *pool, void *base_config, void *own_config)
{
    const struct script_config *base = base_config, *own = own_config;
    struct script_config *merged = apr_palloc(pool, sizeof *merged);
    MERGE(may_free);
    MERGE(report);
    MERGE(debug);
    MERGE(max_instructions);
    MERGE(max_memory);
    MERGE(max_time);
    return merged;
}

static struct script_config effective_config(const request_rec *request)
{
    static const struct script_config defaults = {1, 0, 0, 64 << 20, 1000000000, 10 * APR_USEC_PER_SEC};
    struct script_config *config = ap_get_module_config(request->per_dir_config, &reap_lua_module);
    return *(struct script_config *)merge_config(request->pool, (void *)&defaults, config);
}

/* A number, with K, M or G for powers of unit. -1 if the text is no number. */
static apr_int64_t parse_number(const char *argument, apr_int64_t unit)
{
    static const char letters[] = "KMG";
    char *end;
    errno = 0;
    apr_int64_t number = apr_strtoi64(argument, &end, 10);
    if (end == argument || errno || number < 0) return -1;
    const char *letter = *end ? strchr(letters, apr_toupper((unsigned char)*end)) : NULL;
    if (letter ? end[1] : *end) return -1;
    for (; letter && letter >= letters; letter--) {
        if (number > APR_INT64_MAX / unit) return -1;
        number *= unit;
    }
    return number;
}

static const char *complain(const cmd_parms *cmd, const char *argument, const char *wanted)
{
    return apr_psprintf(cmd->pool, "%s: '%s' is not %s", cmd->cmd->name, argument, wanted);
}

static const char *set_bytes(const cmd_parms *cmd, apr_int64_t *bytes, const char *argument)
{
    *bytes = parse_number(argument, 1024);
    return *bytes >= 0 ? NULL : complain(cmd, argument, "a number of bytes (as in 64M)");
}

static const char *set_max_memory(cmd_parms *cmd, void *own_config, const char *argument)
{
    struct script_config *config = own_config;
    return set_bytes(cmd, &config->max_memory, argument);
}

static const char *set_cache(cmd_parms *cmd, void *unused, const char *argument)
{
    (void)unused;
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    return error ? error : set_bytes(cmd, &cache_size, argument);
}

static const char *set_max_instructions(cmd_parms *cmd, void *own_config, const char *argument)
{
    struct script_config *config = own_config;
    config->max_instructions = parse_number(argument, 1000);
    return config->max_instructions >= 0 ? NULL : complain(cmd, argument, "a number (as in 500M)");
}

static const char *set_max_time(cmd_parms *cmd, void *own_config, const char *argument)
{
    struct script_config *config = own_config;
    apr_interval_time_t time;
    /* httpd's parser takes a word without digits for 0 */
    if (!apr_isdigit(*argument) || ap_timeout_parameter_parse(argument, &time, "s") != APR_SUCCESS ||
        time < 0)
        return complain(cmd, argument, "a time (as in 10s or 500ms)");
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
    AP_INIT_FLAG("ReapLuaDebug", ap_set_flag_slot, OFFSET(debug), RSRC_CONF | ACCESS_CONF,
                 "on: the client gets the error and its traceback; the default is off"),
    AP_INIT_TAKE1("ReapLuaMaxInstructions", set_max_instructions, NULL, RSRC_CONF | ACCESS_CONF,
                  "the most instructions of Lua's that a script may use, or with K, M or G; 1G; 0: no limit"),
    AP_INIT_TAKE1("ReapLuaCache", set_cache, NULL, RSRC_CONF,
                  "the most that each process keeps of compiled scripts, as in 4M, the default; 0: nothing"),
    AP_INIT_TAKE1("ReapLuaMaxTime", set_max_time, NULL, RSRC_CONF | ACCESS_CONF,
                  "the most CPU time that a script may use, as in 10s or 500ms; 10s; 0: no limit"),
    {.name = NULL}};

/* --- running ------------------------------------------------------------------------------------- */

static int compile_script(lua_State *L, request_rec *request)
{
    errno = 0;
    int status = luaL_loadfilex(L, request->filename, "t");
    if (status == LUA_OK) script_cache_store(L, request->filename, &request->finfo);
    if (status == LUA_ERRFILE)
        script_of(L)->failed_status = errno == ENOENT ? HTTP_NOT_FOUND : HTTP_FORBIDDEN;
    if (status == LUA_ERRSYNTAX)
        script_of(L)->is_old_news =
            !script_cache_is_news(request->filename, &request->finfo, lua_tostring(L, -1));
    return status;
}

static int load_script(lua_State *L, request_rec *request)
{
    script_of(L)->cached = script_cache_load(L, request->filename, &request->finfo);
    return script_of(L)->cached ? LUA_OK : compile_script(L, request);
}

/* Everything that may raise an error: called by lua_pcall. */
static int run_script(lua_State *L)
{
    script_library_open(L);
    script_request_open(L);
    script_limits_start(L);
    if (load_script(L, script_of(L)->request) != LUA_OK) return lua_error(L);
    lua_call(L, 0, 0);
    return 0;
}

static void log_error(lua_State *L, struct script *script)
{
    script->error = script_error_text(L, script);
    int level = script->client_gone ? APLOG_INFO : script->is_old_news ? APLOG_DEBUG : APLOG_ERR;
    ap_log_rerror(APLOG_MARK, level, 0, script->request, "%s", script->error);
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

/* With ReapLuaDebug the answer is the line of the log. */
static int show_error(struct script *script)
{
    script->request->status = HTTP_INTERNAL_SERVER_ERROR;
    ap_set_content_type(script->request, "text/plain; charset=utf-8");
    apr_table_clear(script->request->headers_out);
    apr_brigade_puts(script->output, NULL, NULL, script->error);
    apr_brigade_puts(script->output, NULL, NULL, "\n");
    script_request_finish(script);
    return OK;
}

static int end_in_error(struct script *script)
{
    if (script->client_gone) return DONE;
    if (script->begun) return break_off(script);
    apr_brigade_cleanup(script->output);
    if (script->shows_errors && !script->failed_status) return show_error(script);
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
    lua_pushcfunction(L, script_error_describe);
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
    struct script script = {
        .request = request,
        .reports = config.report,
        .shows_errors = config.debug,
        .limits = {.max_time = config.max_time, .max_instructions = config.max_instructions}};
    script.output = apr_brigade_create(request->pool, request->connection->bucket_alloc);
    script_memory_init(&script.memory, request->pool, config.may_free, (size_t)config.max_memory);
    script.memory.limits = &script.limits;
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

static int set_defaults(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary)
{
    (void)pool, (void)log, (void)temporary;
    cache_size = default_cache;
    return OK;
}

static void start_child(apr_pool_t *pool, server_rec *server)
{
    (void)pool, (void)server;
    script_cache_init((size_t)cache_size);
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_pre_config(set_defaults, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(start_child, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(announce, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA reap_lua_module = {
    STANDARD20_MODULE_STUFF, create_config, merge_config, NULL, NULL, directives, register_hooks, 0};
