/* SPDX-License-Identifier: Apache-2.0 */
#include "limit.h"

#include "board.h"
#include "library.h"
#include "live.h"
#include "pools.h"
#include "settings.h"

#include <httpd.h>

#include <apr_buckets.h>
#include <apr_strings.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <util_filter.h>

APLOG_USE_MODULE(reap);

/* --- what is held -------------------------------------------------------------------------------- */

/* A limit that is exceeded; name is NULL where none is. */
struct excess {
    const char *name;
    size_t bytes, limit;
};

/* The connection that the client made: the one of all streams. */
static conn_rec *client_connection(const request_rec *r)
{
    return r->connection->master ? r->connection->master : r->connection;
}

/* in_hand: bytes outside of pools, in the brigade that passes. */
static struct excess look(request_rec *r, struct live *live, size_t in_hand)
{
    apr_int64_t limit = settings_of_request(r).limit;
    if (limit) {
        size_t bytes = live_look(live) + in_hand;
        if (bytes > (size_t)limit) return (struct excess){"ReapLimitRequest", bytes, (size_t)limit};
    }
    limit = settings_of_server(r->server).connection_limit;
    if (limit) {
        size_t bytes = library_held(client_connection(r)->pool) + in_hand;
        if (bytes > (size_t)limit) return (struct excess){"ReapLimitConnection", bytes, (size_t)limit};
    }
    return (struct excess){.name = NULL};
}

static bool has_limits(const request_rec *r)
{
    return !library_lacks() &&
           (settings_of_request(r).limit || settings_of_server(r->server).connection_limit);
}

/* --- telling ------------------------------------------------------------------------------------- */

static void report_pools(request_rec *r, void **reap)
{
    struct text tree = pools_tree_text(reap, 40);
    char *rest = tree.data, *line;
    while (!tree.failed && (line = apr_strtok(rest, "\n", &rest)))
        ap_log_rerror(APLOG_MARK, APLOG_NOTICE, 0, r, "pool %s", line);
    text_free(&tree);
}

static void tell(request_rec *r, struct live *live, const struct excess *excess, int action)
{
    static const char *const ends[] = {"denied", "connection closed", "goes on"};
    void **reap =
        apr_pool_reap(excess->name[sizeof "ReapLimit" - 1] == 'C' ? client_connection(r)->pool : live->pool);
    struct text tags = pools_largest_tags(reap, 5);
    if (live->is_logged) return;
    live->is_logged = true;
    board_count_excess();
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                  "%s %s holds %" APR_SIZE_T_FMT " bytes, over %s %" APR_SIZE_T_FMT
                  " (%s); largest pools: %s",
                  live->method, live->uri, excess->bytes, excess->name, excess->limit, ends[action],
                  tags.data ? tags.data : "unknown");
    text_free(&tags);
    if (settings_of_request(r).reports & REPORT_LIMIT) report_pools(r, reap);
}

/* --- ending a request ---------------------------------------------------------------------------- */

/* An error in the stream of output: the status, if headers are not out; else a response that breaks off. */
static void pass_error(request_rec *r, struct live *live, ap_filter_t *to, int status)
{
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, alloc);
    APR_BRIGADE_INSERT_TAIL(brigade, ap_bucket_error_create(status, NULL, r->pool, alloc));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(alloc));
    live->is_passing = true; /* our own filter may be on the way */
    ap_pass_brigade(to, brigade);
    live->is_passing = false;
}

/* The response cannot be finished. A connection of HTTP/1 has no more to say, and its output filters give
 * errors from now on; a stream of HTTP/2 is reset, while the connection goes on. */
static void break_off(request_rec *r, struct live *live, ap_filter_t *to)
{
    r->connection->keepalive = AP_CONN_CLOSE;
    if (r->connection->master && live->top->sent_bodyct)
        pass_error(r, live, to, HTTP_BAD_GATEWAY);
    else
        r->connection->aborted = 1;
}

/* What a filter returns for a request beyond its limit; APR_SUCCESS if it goes on. to is where output
 * goes, and status what the client gets if the administrator wants no other. */
static apr_status_t end_in_filter(request_rec *r, struct live *live, ap_filter_t *to, int status)
{
    struct request_settings settings = settings_of_request(r);
    if (settings.action == ACTION_LOG) return APR_SUCCESS;
    live->is_ended = true;
    if (settings.action == ACTION_DENY && !live->top->sent_bodyct) {
        pass_error(r, live, to, settings.status ? settings.status : status);
        return AP_FILTER_ERROR;
    }
    break_off(r, live, to);
    return APR_ECONNABORTED;
}

/* --- filters ------------------------------------------------------------------------------------- */

static size_t bytes_in_hand(const apr_bucket_brigade *brigade)
{
    size_t bytes = 0;
    for (const apr_bucket *bucket = APR_BRIGADE_FIRST(brigade); bucket != APR_BRIGADE_SENTINEL(brigade);
         bucket = APR_BUCKET_NEXT(bucket))
        if (APR_BUCKET_IS_HEAP(bucket)) bytes += bucket->length;
    return bytes;
}

static apr_status_t check_in_filter(request_rec *r, const apr_bucket_brigade *brigade, ap_filter_t *to,
                                    int status)
{
    struct live *live = live_of(r);
    live_enter(live);
    struct excess excess = look(r, live, bytes_in_hand(brigade));
    if (!excess.name) return APR_SUCCESS;
    tell(r, live, &excess, settings_of_request(r).action);
    return end_in_filter(r, live, to, status);
}

static apr_status_t output_filter(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    struct live *live = live_of(f->r);
    if (live->is_passing) return ap_pass_brigade(f->next, brigade);
    apr_status_t status = live->is_ended
                              ? APR_ECONNABORTED
                              : check_in_filter(f->r, brigade, f->next, HTTP_INTERNAL_SERVER_ERROR);
    if (status == APR_SUCCESS) return ap_pass_brigade(f->next, brigade);
    apr_brigade_cleanup(brigade);
    return status;
}

static apr_status_t input_filter(ap_filter_t *f, apr_bucket_brigade *brigade, ap_input_mode_t mode,
                                 apr_read_type_e block, apr_off_t bytes)
{
    if (live_of(f->r)->is_ended) return APR_ECONNABORTED;
    apr_status_t status = ap_get_brigade(f->next, brigade, mode, block, bytes);
    if (status != APR_SUCCESS) return status;
    status = check_in_filter(f->r, brigade, f->r->output_filters, HTTP_REQUEST_ENTITY_TOO_LARGE);
    if (status != APR_SUCCESS) apr_brigade_cleanup(brigade);
    return status;
}

static void insert_filters(request_rec *r)
{
    struct live *live = live_of(r);
    if (!live || live->is_ended || !has_limits(r)) return;
    ap_add_output_filter("REAP_LIMIT", NULL, r, r->connection);
    if (!r->main) ap_add_input_filter("REAP_LIMIT_IN", NULL, r, r->connection);
}

/* --- phases -------------------------------------------------------------------------------------- */

/* The hard limit of the section that the request is in by now. It is the library's: the allocation that
 * exceeds it fails, and httpd ends the child. */
static void set_hard_limit(request_rec *r)
{
    if (!apr_pool_reap || !reapSetLimit || r->main) return;
    size_t limit = (size_t)settings_of_request(r).hard;
    struct reap_stats stats;
    reapStats(apr_pool_reap(r->pool), &stats);
    if (stats.limit != limit && reapSetLimit(apr_pool_reap(r->pool), limit) != 0)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "holds more than ReapLimitHard already");
}

static int end_in_phase(request_rec *r, struct live *live)
{
    struct request_settings settings = settings_of_request(r);
    if (settings.action == ACTION_LOG) return DECLINED;
    live->is_ended = true;
    if (settings.action == ACTION_CLOSE) break_off(r, live, r->output_filters);
    return settings.status ? settings.status : HTTP_INTERNAL_SERVER_ERROR;
}

/* A subrequest is its main request's affair; that one meets the filters. */
static int check_in_phase(request_rec *r)
{
    struct live *live = r->main ? NULL : live_of(r);
    if (!live || live->is_ended) return DECLINED;
    live_enter(live);
    if (!has_limits(r)) return DECLINED;
    struct excess excess = look(r, live, 0);
    if (!excess.name) return DECLINED;
    tell(r, live, &excess, settings_of_request(r).action);
    return end_in_phase(r, live);
}

static int fixups(request_rec *r)
{
    if (settings_any_limits()) set_hard_limit(r);
    return check_in_phase(r);
}

/* --- when there is no memory --------------------------------------------------------------------- */

static apr_abortfunc_t abort_before; /* httpd's, of all pools */

/* Says for which request, from strings that are there, since nothing can be allocated. Then httpd's own
 * function ends the child. */
static int abort_request(int status)
{
    const struct live *live = live_entered();
    live_enter(NULL);
    if (live)
        ap_log_error(APLOG_MARK, APLOG_CRIT, APR_ENOMEM, live->top->server,
                     "no memory (or ReapLimitHard) for %s %s from %s; this child ends", live->method,
                     live->uri, live->client);
    return abort_before ? abort_before(status) : status;
}

void limit_begin(request_rec *r)
{
    apr_abortfunc_t before = apr_pool_abort_get(r->pool);
    if (before != abort_request) abort_before = before;
    apr_pool_abort_set(abort_request, r->pool);
    if (settings_any_limits()) set_hard_limit(r);
}

void limit_register(void)
{
    /* Next to the handler, before the filters that gather output. */
    ap_register_output_filter("REAP_LIMIT", output_filter, NULL, AP_FTYPE_RESOURCE - 1);
    ap_register_input_filter("REAP_LIMIT_IN", input_filter, NULL, AP_FTYPE_RESOURCE - 1);
    ap_hook_insert_filter(insert_filters, NULL, NULL, APR_HOOK_LAST);
    ap_hook_post_read_request(check_in_phase, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_header_parser(check_in_phase, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_fixups(fixups, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_handler(check_in_phase, NULL, NULL, APR_HOOK_REALLY_FIRST);
}
