/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include "board.h"
#include "process.h"

#include <ap_mpm.h>

#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <errno.h>
#include <http_core.h>
#include <http_log.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

APLOG_USE_MODULE(reap);
extern module AP_MODULE_DECLARE_DATA reap_module;

enum { UNSET = -1 };

static apr_array_header_t *limits; /* of the configuration, in its pool; NULL: none */
static bool read_late;             /* a limit was read at run time */

/* --- merging ------------------------------------------------------------------------------------- */

void *settings_create_directory(apr_pool_t *pool, char *directory)
{
    (void)directory;
    struct request_settings *settings = apr_palloc(pool, sizeof *settings);
    *settings = (struct request_settings){UNSET, UNSET, UNSET, UNSET, UNSET, NULL, NULL};
    return settings;
}

#define MERGE(field) merged->field = own->field != UNSET ? own->field : base->field

void *settings_merge_directory(apr_pool_t *pool, void *base_settings, void *own_settings)
{
    const struct request_settings *base = base_settings, *own = own_settings;
    struct request_settings *merged = apr_palloc(pool, sizeof *merged);
    MERGE(limit);
    merged->limit_at = own->limit != UNSET ? own->limit_at : base->limit_at;
    MERGE(hard);
    merged->hard_at = own->hard != UNSET ? own->hard_at : base->hard_at;
    MERGE(action);
    MERGE(status);
    MERGE(reports);
    return merged;
}

void *settings_create_server(apr_pool_t *pool, server_rec *server)
{
    (void)server;
    struct server_settings *settings = apr_palloc(pool, sizeof *settings);
    *settings = (struct server_settings){UNSET, UNSET, UNSET, {UNSET, UNSET}};
    return settings;
}

void *settings_merge_server(apr_pool_t *pool, void *base_settings, void *own_settings)
{
    const struct server_settings *base = base_settings, *own = own_settings;
    struct server_settings *merged = apr_palloc(pool, sizeof *merged);
    MERGE(collects);
    MERGE(connection_limit);
    merged->profiles = base->profiles;
    merged->child = base->child;
    return merged;
}

/* --- what is in force ---------------------------------------------------------------------------- */

static struct request_settings in_force(const ap_conf_vector_t *vector)
{
    struct request_settings settings =
        *(const struct request_settings *)ap_get_module_config(vector, &reap_module);
    if (settings.limit == UNSET) settings.limit = 0;
    if (settings.hard == UNSET) settings.hard = 0;
    if (settings.action == UNSET) settings.action = ACTION_DENY;
    if (settings.status == UNSET) settings.status = 0;
    if (settings.reports == UNSET) settings.reports = 0;
    return settings;
}

struct request_settings settings_of_request(const request_rec *r) { return in_force(r->per_dir_config); }

struct request_settings settings_of_main_server(const server_rec *server)
{
    return in_force(server->lookup_defaults);
}

struct server_settings settings_of_server(const server_rec *server)
{
    struct server_settings settings =
        *(const struct server_settings *)ap_get_module_config(server->module_config, &reap_module);
    if (settings.collects == UNSET) settings.collects = 0;
    if (settings.profiles == UNSET) settings.profiles = 0;
    if (settings.connection_limit == UNSET) settings.connection_limit = 0;
    return settings;
}

struct child_settings settings_of_child(const server_rec *main_server)
{
    const struct server_settings *settings = ap_get_module_config(main_server->module_config, &reap_module);
    return settings->child.limit == UNSET ? (struct child_settings){0, 0} : settings->child;
}

size_t settings_request_limit(const request_rec *r)
{
    const struct request_settings *settings = ap_get_module_config(r->per_dir_config, &reap_module);
    return settings->limit == UNSET ? 0 : (size_t)settings->limit;
}

size_t settings_connection_limit(const server_rec *server)
{
    const struct server_settings *settings = ap_get_module_config(server->module_config, &reap_module);
    return settings->connection_limit == UNSET ? 0 : (size_t)settings->connection_limit;
}

bool settings_any_collects(const server_rec *server)
{
    while (server && !settings_of_server(server).collects) server = server->next;
    return server;
}

bool settings_any_limits(void) { return limits || __atomic_load_n(&read_late, __ATOMIC_RELAXED); }

const struct limit_set *settings_limits(size_t *n)
{
    *n = limits ? (size_t)limits->nelts : 0;
    return limits ? (const struct limit_set *)(const void *)limits->elts : NULL;
}

/* --- what a request may meet --------------------------------------------------------------------- */

static ap_conf_vector_t *section_at(const apr_array_header_t *sections, int i)
{
    return APR_ARRAY_IDX(sections, i, ap_conf_vector_t *);
}

/* Sections with settings by their path, in the order of the array. What is merged for one is so for all. */
struct at_path {
    apr_array_header_t *sections; /* int */
    void *merged;                 /* NULL: not yet */
};

static bool has_path(const core_dir_config *core)
{
    return core->d && *core->d == '/' && !core->r && !core->d_is_fnmatch;
}

static apr_hash_t *find_paths(apr_pool_t *pool, const apr_array_header_t *sections)
{
    apr_hash_t *paths = apr_hash_make(pool);
    for (int i = 0; i < sections->nelts; i++) {
        const core_dir_config *core = ap_get_core_module_config(section_at(sections, i));
        if (!has_path(core) || !ap_get_module_config(section_at(sections, i), &reap_module)) continue;
        struct at_path *at = apr_hash_get(paths, core->d, APR_HASH_KEY_STRING);
        if (!at) {
            apr_hash_set(paths, core->d, APR_HASH_KEY_STRING, at = apr_pcalloc(pool, sizeof *at));
            at->sections = apr_array_make(pool, 1, sizeof(int));
        }
        APR_ARRAY_PUSH(at->sections, int) = i;
    }
    return paths;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The settings with those of the section, and of those that hold all that is in it, as far as their paths
 * tell. */
static void *merge_around(apr_pool_t *pool, void *settings, const apr_array_header_t *sections,
                          apr_hash_t *paths, int i)
{
    const core_dir_config *inner = ap_get_core_module_config(section_at(sections, i));
    const char *path = inner->d && !inner->r && *inner->d == '/' ? inner->d : "/";
    struct at_path *at, *own = has_path(inner) ? apr_hash_get(paths, path, APR_HASH_KEY_STRING) : NULL;
    if (own && own->merged) return own->merged;
    apr_array_header_t *around = apr_array_make(pool, 4, sizeof(int));
    for (apr_ssize_t n = 1; path[n - 1]; n++)
        if ((n == 1 || path[n - 1] == '/' || path[n] == '/' || !path[n]) &&
            (at = apr_hash_get(paths, path, n)))
            apr_array_cat(around, at->sections);
    if (!has_path(inner) && ap_get_module_config(section_at(sections, i), &reap_module))
        APR_ARRAY_PUSH(around, int) = i;
    qsort(around->elts, (size_t)around->nelts, sizeof(int), by_number);
    for (int j = 0; j < around->nelts; j++)
        settings = settings_merge_directory(
            pool, settings,
            ap_get_module_config(section_at(sections, APR_ARRAY_IDX(around, j, int)), &reap_module));
    if (own) own->merged = settings;
    return settings;
}

static bool check_sections(apr_pool_t *pool, const server_rec *server, void *settings,
                           const apr_array_header_t *sections);

static const char *name_of(apr_pool_t *pool, const server_rec *server, const core_dir_config *section)
{
    if (!server->is_virtual) return section->d ? section->d : "the server";
    const char *host = server->server_hostname;
    return apr_pstrcat(pool, section->d ? section->d : "", section->d ? " of " : "", "virtual host ",
                       host ? host : "without a name", NULL);
}

static bool check_section(apr_pool_t *pool, const server_rec *server, void *merged,
                          const core_dir_config *section)
{
    const struct request_settings *settings = merged;
    if (settings->hard > 0 && settings->limit > 0 && settings->hard <= settings->limit) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                     "ReapLimitHard must be above ReapLimitRequest: %" APR_INT64_T_FMT
                     " (%s) is not above %" APR_INT64_T_FMT " (%s) in %s",
                     settings->hard, settings->hard_at, settings->limit, settings->limit_at,
                     name_of(pool, server, section));
        return false;
    }
    return check_sections(pool, server, merged, section->sec_file) &&
           check_sections(pool, server, merged, section->sec_if);
}

/* Each section with those around it, in httpd's order of merging. */
static bool check_sections(apr_pool_t *pool, const server_rec *server, void *settings,
                           const apr_array_header_t *sections)
{
    apr_hash_t *paths = sections ? find_paths(pool, sections) : NULL;
    for (int i = 0; sections && i < sections->nelts; i++)
        if (!check_section(pool, server, merge_around(pool, settings, sections, paths, i),
                           ap_get_core_module_config(section_at(sections, i))))
            return false;
    return true;
}

/* At a restart the first process has more than at its start, and must not end for that. */
static bool check_child_limit(const server_rec *server)
{
    apr_int64_t limit = settings_of_child(server).limit, size = process_proportional(getpid());
    apr_int64_t machine = (apr_int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if (!limit || ap_state_query(AP_SQ_MAIN_STATE) != AP_SQ_MS_CREATE_PRE_CONFIG) return true;
    if (size < 0) size = process_resident(getpid());
    if (limit <= size)
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                     "ReapChildLimit: %" APR_INT64_T_FMT " is not above the %" APR_INT64_T_FMT
                     " bytes that httpd has before a child has served anything",
                     limit, size);
    else if (machine > 0 && limit > machine)
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     "ReapChildLimit: %" APR_INT64_T_FMT " is more than the %" APR_INT64_T_FMT
                     " bytes of this machine: no child will be ended for it",
                     limit, machine);
    return limit > size;
}

/* An M that was forgotten ends every request. */
static void warn_of_small_limits(const server_rec *server)
{
    size_t n;
    const struct limit_set *set = settings_limits(&n);
    for (; n--; set++)
        if (set->bytes < 16 << 10)
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                         "%s: %" APR_INT64_T_FMT
                         " bytes (%s) are less than any request has: each will be beyond it. "
                         "Is a K, M or G missing?",
                         set->directive, set->bytes, set->at);
}

bool settings_check(apr_pool_t *pool, const server_rec *server)
{
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) warn_of_small_limits(server);
    if (!check_child_limit(server)) return false;
    for (; limits && server; server = server->next) {
        void *settings = ap_get_module_config(server->lookup_defaults, &reap_module);
        const core_server_config *core = ap_get_core_module_config(server->module_config);
        if (!check_section(pool, server, settings, ap_get_core_module_config(server->lookup_defaults)) ||
            !check_sections(pool, server, settings, core->sec_dir) ||
            !check_sections(pool, server, settings, core->sec_url))
            return false;
    }
    return true;
}

/* --- reading ------------------------------------------------------------------------------------- */

static const char *const action_names[] = {"deny", "close", "log"};

const char *settings_action_name(int action) { return action_names[action]; }

/* Servers run, perhaps in threads: what is read now is a request's, and must not change what all share. */
static bool at_run_time(void) { return ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_RUN_MPM; }

static const char *complain(cmd_parms *cmd, const char *argument, const char *wanted)
{
    return apr_psprintf(cmd->pool, "%s: '%s' is not %s", cmd->cmd->name, argument, wanted);
}

/* A number, perhaps with one of these units; false if the text is none, or not above 0, or above `most`. */
static bool parse(const char *argument, const char *units, apr_int64_t most, apr_int64_t *value)
{
    char *end;
    if (!apr_isdigit(*argument)) return false; /* strtol takes signs and blanks */
    errno = 0;
    apr_int64_t number = apr_strtoi64(argument, &end, 10);
    const char *unit = *end ? strchr(units, apr_toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (unit) end++;
    if (*end || errno || number <= 0 || number > most >> shift) return false;
    *value = number << shift;
    return true;
}

/* The sections around a directive, the outermost first. */
static const char *where_is(const ap_directive_t *directive, apr_pool_t *pool)
{
    const char *where = "";
    for (const ap_directive_t *section = directive->parent; section; section = section->parent)
        where = apr_pstrcat(pool, section->directive, " ", section->args, *where ? " " : "", where, NULL);
    return where;
}

static apr_status_t forget_limits(void *data)
{
    (void)data;
    limits = NULL;
    return APR_SUCCESS;
}

/* The list and its strings go with the configuration's own pool, whichever one the directive is read with.
 * Returns where the directive stands. */
static const char *note_limit(const cmd_parms *cmd, apr_int64_t bytes)
{
    apr_pool_t *pool = cmd->server->process->pconf;
    const ap_directive_t *directive = cmd->directive;
    if (!limits) {
        limits = apr_array_make(pool, 4, sizeof(struct limit_set));
        apr_pool_cleanup_register(pool, NULL, forget_limits, apr_pool_cleanup_null);
    }
    const char *at = apr_psprintf(pool, "%s:%d", directive->filename, directive->line_num);
    *(struct limit_set *)apr_array_push(limits) =
        (struct limit_set){cmd->cmd->name, bytes, where_is(directive, pool), at, cmd->server};
    return at;
}

static void note_late_limit(void)
{
    __atomic_store_n(&read_late, true, __ATOMIC_RELAXED);
    board_count(COUNT_READ_LATE);
}

/* at: where the directive stands, or NULL. */
static const char *set_size(cmd_parms *cmd, apr_int64_t *bytes, const char **at, const char *argument)
{
    *at = NULL;
    if (strcasecmp(argument, "none") == 0)
        *bytes = 0;
    else if (!parse(argument, "KMG", APR_INT64_MAX, bytes))
        return complain(cmd, argument, "a size: bytes above 0, or with K, M or G, as in 64M; or none");
    if (*bytes > 0 && at_run_time())
        note_late_limit();
    else if (*bytes > 0)
        *at = note_limit(cmd, *bytes);
    return NULL;
}

static const char *set_limit(cmd_parms *cmd, void *own, const char *argument)
{
    struct request_settings *settings = own;
    return set_size(cmd, &settings->limit, &settings->limit_at, argument);
}

static const char *set_hard(cmd_parms *cmd, void *own, const char *argument)
{
    struct request_settings *settings = own;
    return set_size(cmd, &settings->hard, &settings->hard_at, argument);
}

static const char *refuse_late(const cmd_parms *cmd)
{
    return apr_psprintf(cmd->pool, "%s: belongs to a server, and is not read at run time", cmd->cmd->name);
}

static const char *set_connection_limit(cmd_parms *cmd, void *own, const char *argument)
{
    (void)own;
    struct server_settings *settings = ap_get_module_config(cmd->server->module_config, &reap_module);
    const char *at;
    return at_run_time() ? refuse_late(cmd) : set_size(cmd, &settings->connection_limit, &at, argument);
}

/* SIZE, or SIZE after REQUESTS. */
static const char *set_child_limit(cmd_parms *cmd, void *own, const char *size, const char *word,
                                   const char *number)
{
    struct server_settings *settings = ap_get_module_config(cmd->server->module_config, &reap_module);
    const char *at;
    (void)own;
    settings->child.after = 0;
    if (at_run_time()) return refuse_late(cmd);
    if (cmd->server->is_virtual)
        return apr_psprintf(cmd->pool, "%s: is for the main server: a child serves all virtual hosts",
                            cmd->cmd->name);
    if (word && strcasecmp(word, "after") != 0)
        return complain(cmd, word, "the word after, as in 800M after 1000");
    if (number && !parse(number, "", APR_INT32_MAX, &settings->child.after))
        return complain(cmd, number, "a number of requests above 0");
    return set_size(cmd, &settings->child.limit, &at, size);
}

static const char *set_collects(cmd_parms *cmd, void *own, int flag)
{
    (void)own;
    struct server_settings *settings = ap_get_module_config(cmd->server->module_config, &reap_module);
    if (at_run_time()) return refuse_late(cmd);
    settings->collects = flag;
    return NULL;
}

static const char *set_profiles(cmd_parms *cmd, void *own, int flag)
{
    (void)own;
    struct server_settings *settings = ap_get_module_config(cmd->server->module_config, &reap_module);
    settings->profiles = flag;
    return cmd->server->is_virtual || at_run_time()
               ? "ReapProfile: is for the main server: all children have one profile"
               : NULL;
}

static const char *set_action(cmd_parms *cmd, void *own, const char *name, const char *status)
{
    static const char *const statuses[] = {"413", "500", "503"};
    struct request_settings *settings = own;
    settings->action = UNSET;
    settings->status = 0;
    for (int i = ACTION_DENY; i <= ACTION_LOG; i++)
        if (strcasecmp(name, action_names[i]) == 0) settings->action = i;
    if (settings->action == UNSET) return complain(cmd, name, "log, close or deny");
    if (!status) return NULL;
    if (settings->action != ACTION_DENY)
        return apr_psprintf(cmd->pool, "%s: a status goes with deny, not with %s", cmd->cmd->name, name);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (strcmp(status, statuses[i]) == 0) settings->status = atoi(status);
    return settings->status ? NULL : complain(cmd, status, "a status to deny with: 413, 500 or 503");
}

static const char *set_reports(cmd_parms *cmd, void *own, const char *first, const char *second)
{
    struct request_settings *settings = own;
    const char *names[] = {first, second};
    settings->reports = 0;
    for (int i = 0; i < 2 && names[i]; i++) {
        if (strcasecmp(names[i], "limit") == 0)
            settings->reports |= REPORT_LIMIT;
        else if (strcasecmp(names[i], "exit") == 0)
            settings->reports |= REPORT_EXIT;
        else if (strcasecmp(names[i], "off") != 0)
            return complain(cmd, names[i], "off, or limit, exit or both");
        else if (second)
            return apr_psprintf(cmd->pool, "%s: off stands alone, not beside '%s'", cmd->cmd->name,
                                names[!i]);
    }
    if ((settings->reports & REPORT_EXIT) && (cmd->path || cmd->server->is_virtual || at_run_time()))
        return apr_psprintf(cmd->pool, "%s: exit is for the main server: a process ends, no virtual host",
                            cmd->cmd->name);
    return NULL;
}

enum { ANYWHERE = RSRC_CONF | ACCESS_CONF };

const command_rec settings_directives[] = {
    AP_INIT_FLAG(
        "ReapStatus", set_collects, NULL, RSRC_CONF,
        "On: the server collects what the handler reap-status shows; Off (the default): nothing runs"),
    AP_INIT_TAKE1("ReapLimitRequest", set_limit, NULL, ANYWHERE,
                  "the bytes that a request's pools may hold, or with K, M or G; none (the default)"),
    AP_INIT_TAKE1("ReapLimitHard", set_hard, NULL, ANYWHERE,
                  "the bytes of a request at which its child process ends; none (the default)"),
    AP_INIT_TAKE1("ReapLimitConnection", set_connection_limit, NULL, RSRC_CONF,
                  "the bytes that a connection's pools may hold, its requests' included; none (the default)"),
    AP_INIT_TAKE13(
        "ReapChildLimit", set_child_limit, NULL, RSRC_CONF,
        "the bytes of memory beyond which a child process ends when its requests have, or with K, M "
        "or G, and 'after' with a number of requests that it serves first; none (the default)"),
    AP_INIT_FLAG(
        "ReapProfile", set_profiles, NULL, RSRC_CONF,
        "On: the heap profile is on in all children, if libreap-profile is preloaded; Off (the default)"),
    AP_INIT_TAKE12(
        "ReapLimitAction", set_action, NULL, ANYWHERE,
        "what happens beyond a limit: log; close; or deny (the default), also with 413, 500 or 503"),
    AP_INIT_TAKE12("ReapReport", set_reports, NULL, ANYWHERE,
                   "what goes to the error log: limit: the pools of a request beyond its limit; exit: each "
                   "child's pools by tag when it ends; off (the default)"),
    {.name = NULL}};
