/* SPDX-License-Identifier: Apache-2.0 */
/* mod_reap: what the pools of this httpd hold, and limits on it.
 *
 *     settings          the directives
 *     live, limit       the requests of this child; those beyond a limit
 *     charge            the request or connection in the heap profile
 *     child, ended      children that have too much memory, and end; that end in the midst of requests
 *     strike, pressure  the log's lines of limits and of misuse; memory.high of the control group
 *     pools, process    sums over this child's pools; what the OS says
 *     answer, gather    what a child tells when asked; one child asks all
 *     board             what all children share
 *     documents         the forms of the answer; status serves them and the page
 *
 * The module is not linked to libreap-apr (library.h). Without ReapStatus and without a limit its hooks
 * return at once.
 */
#include "answer.h"
#include "board.h"
#include "charge.h"
#include "child.h"
#include "ended.h"
#include "library.h"
#include "limit.h"
#include "live.h"
#include "pools.h"
#include "pressure.h"
#include "process.h"
#include "settings.h"
#include "status.h"
#include "strike.h"

#include <ap_mpm.h>
#include <apr_optional_hooks.h>
#include <errno.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_status.h>
#include <mpm_common.h>
#include <scoreboard.h>

APLOG_USE_MODULE(reap);
/* The build hides symbols; httpd looks this one up. */
extern module AP_MODULE_DECLARE_DATA reap_module __attribute__((visibility("default")));

static bool collects; /* some server has ReapStatus */
static bool ends_children;

/* --- start --------------------------------------------------------------------------------------- */

static int check_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary, server_rec *server)
{
    (void)pool, (void)log;
    return settings_check(temporary, server) ? OK : HTTP_INTERNAL_SERVER_ERROR;
}

static int post_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary, server_rec *server)
{
    (void)log, (void)temporary;
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG)
        return OK; /* the trial before the start */
    ends_children = settings_of_child(server).limit > 0;
    bool has_board = (ends_children || settings_any_collects(server)) && board_open(server);
    collects = has_board && settings_any_collects(server);
    if (collects) pressure_begin(pool);
    if (collects) ended_begin(pool);
    if (settings_of_server(server).profiles) charge_begin_profile(pool, server);
    if (library_lacks() && (collects || settings_any_limits()))
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server, "%s", library_lacks());
    return OK;
}

/* Whether requests are followed. */
static bool follows(void) { return collects || settings_any_limits(); }

/* --- a child's life ------------------------------------------------------------------------------ */

/* ReapReport exit: the pools by tag, when the child ends. */
static apr_status_t report_exit(void *data)
{
    server_rec *server = data;
    struct text tags = pools_largest_tags(NULL, 10);
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, server,
                 "child %ld ends with %ld kB resident; largest pools: %s", (long)getpid(),
                 (long)(process_resident(getpid()) / 1024), tags.data ? tags.data : "unknown");
    text_free(&tags);
    return APR_SUCCESS;
}

static void listen_for_questions(server_rec *server)
{
    if (library_lacks()) return;
    if (&reap_profile_face_2)
        reapAnswer("profile", reap_profile_face_2.answer, NULL); /* it was loaded first */
    if ((reapAnswer("apache", answer, server) != 0 && errno != EEXIST) || reapListen(board_address()) != 0)
        ap_log_error(APLOG_MARK, APLOG_WARNING, APR_FROM_OS_ERROR(errno), server,
                     "this child cannot be asked at %s; reap-status shows it as silent", board_address());
}

static apr_pool_t *top_of(apr_pool_t *pool)
{
    while (apr_pool_parent_get(pool)) pool = apr_pool_parent_get(pool);
    return pool;
}

static void child_init(apr_pool_t *pool, server_rec *server)
{
    int generation = 0;
    ended_in_child();
    if ((settings_of_main_server(server).reports & REPORT_EXIT) && !library_lacks())
        apr_pool_pre_cleanup_register(pool, server, report_exit);
    if (follows()) strike_name_misuse(pool);
    if (ends_children) child_begin(pool, server);
    if (!collects) return;
    ap_mpm_query(AP_MPMQ_GENERATION, &generation);
    board_join(pool, generation);
    if (board_own_slot()) live_begin_child(board_own_slot(), top_of(pool));
    answer_begin(pool);
    listen_for_questions(server);
}

/* A child that ends by itself leaves the board first. */
static void child_status(server_rec *server, pid_t pid, ap_generation_t generation, int number,
                         mpm_child_status status)
{
    struct board_slot *slots;
    size_t n = collects && status == MPM_CHILD_EXITED ? board_slots(&slots) : 0, i = 0;
    (void)generation, (void)number;
    while (i < n && __atomic_load_n(&slots[i].pid, __ATOMIC_ACQUIRE) != pid) i++;
    if (i == n) return;
    ended_tell(&slots[i], server);
    pressure_look(server);
}

/* --- requests ------------------------------------------------------------------------------------ */

static int pre_connection(conn_rec *c, void *socket)
{
    (void)socket;
    if (collects) live_begin_connection(c);
    return OK;
}

/* After the header was read; and before the fixups, if the first limit of all was read with this request. */
static int follow(request_rec *r)
{
    if (!follows() || r->main || r->prev || live_of(r)) return DECLINED;
    struct live *live = live_begin_request(r, settings_of_server(r->server).collects);
    live_enter(live);
    if (live) limit_begin(r);
    charge_request(r, live);
    return DECLINED;
}

/* A thread takes up a connection: one that is new, or waited for its next request. */
static int take_up(conn_rec *c)
{
    if (collects) charge_connection(c);
    return DECLINED;
}

/* The greatest of what was seen, what there is at the end, and what the request's own pool ever had. */
static size_t peak_of(struct live *live)
{
    size_t own = reapPeakBytes(apr_pool_reap(live->pool));
    live_look(live);
    return live->peak > own ? live->peak : own;
}

static int log_transaction(request_rec *r)
{
    struct live *live = follows() && !library_lacks() ? live_of(r) : NULL;
    if (!live) return DECLINED;
    size_t bytes = peak_of(live);
    char *digits = apr_pcalloc(r->pool, 21), *peak = text_digits(digits + 20, bytes);
    live_note_largest(live, bytes);
    for (request_rec *each = r; each; each = each->next) apr_table_setn(each->notes, "reap-peak", peak);
    limit_end(r, live);
    if (collects && live_note_bytes(live)) pressure_look(r->server);
    charge_connection(r->connection);
    return DECLINED;
}

/* --- the curve, when nobody looks ---------------------------------------------------------------- */

/* The first process calls this every ten seconds. It asks nobody, and reads what children wrote. On stock
 * pools no child answers, and a child that has changed its user may not read the PSS of another one: the
 * first process may. */
static int monitor(apr_pool_t *pool, server_rec *server)
{
    struct board_slot *slots;
    struct board_point point = {.time = apr_time_now()};
    size_t n = collects ? board_slots(&slots) : 0;
    bool asks_pss = library_lacks() && board_is_watched();
    (void)pool;
    if (collects) pressure_look(server);
    for (size_t i = 0; i < n; i++) {
        pid_t pid = __atomic_load_n(&slots[i].pid, __ATOMIC_ACQUIRE);
        if (!pid) continue;
        int64_t rss = process_resident(pid);
        if (rss < 0) continue;
        if (asks_pss) __atomic_store_n(&slots[i].pss, process_proportional(pid), __ATOMIC_RELAXED);
        point.bytes += __atomic_load_n(&slots[i].bytes, __ATOMIC_RELAXED);
        point.rss += (uint64_t)rss;
        point.requests += __atomic_load_n(&slots[i].requests, __ATOMIC_RELAXED);
    }
    if (point.rss) board_add_point(&point);
    return DECLINED;
}

/* --- the module ---------------------------------------------------------------------------------- */

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_status(child_status, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_monitor(monitor, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_connection(pre_connection, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_process_connection(take_up, NULL, NULL, APR_HOOK_REALLY_FIRST);
    /* After modules that find out who the client is. */
    ap_hook_post_read_request(follow, NULL, NULL, APR_HOOK_LAST);
    ap_hook_fixups(follow, NULL, NULL, APR_HOOK_LAST);
    ap_hook_log_transaction(log_transaction, NULL, NULL, APR_HOOK_REALLY_FIRST);
    limit_register();
    child_register();
    ap_hook_handler(status_handler, NULL, NULL, APR_HOOK_MIDDLE);
    APR_OPTIONAL_HOOK(ap, status_hook, status_section, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA reap_module = {
    STANDARD20_MODULE_STUFF, settings_create_directory, settings_merge_directory, settings_create_server,
    settings_merge_server,   settings_directives,       register_hooks,           0,
};
