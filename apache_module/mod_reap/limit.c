/* SPDX-License-Identifier: Apache-2.0 */
#include "limit.h"

#include "board.h"
#include "library.h"
#include "pools.h"
#include "settings.h"
#include "status.h"
#include "strike.h"

#include <ap_expr.h>
#include <apr_buckets.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <sys/socket.h>
#include <util_filter.h>

APLOG_USE_MODULE(reap);

/* --- what is held -------------------------------------------------------------------------------- */

/* A limit that is exceeded; name is NULL where none is. */
struct excess {
    const char *name;
    size_t bytes, limit;
    size_t own; /* of the bytes */
};

/* The connection that the client made: the one of all streams. */
static conn_rec *client_connection(const request_rec *r)
{
    return r->connection->master ? r->connection->master : r->connection;
}

/* Before the fixups have said which handler it is, the section says it. */
static const char *handler_of(request_rec *r)
{
    const core_dir_config *core = ap_get_core_module_config(r->per_dir_config);
    const char *error = NULL;
    if (r->handler || !core->expr_handler) return r->handler ? r->handler : core->handler;
    const char *handler = ap_expr_str_exec(r, core->expr_handler, &error);
    return error ? NULL : handler;
}

/* reap-status shows who is beyond a limit, and answers whatever the limit. */
static bool is_exempt(request_rec *r) { return status_is_handler(handler_of(r)); }

/* Of a connection's streams the largest is the one that goes. At twice the limit each goes that has more than
 * its share, since the largest may never come by; one with less would give nothing back. */
static bool is_spared(const request_rec *r, const struct live *live, const struct excess *excess)
{
    if (!r->connection->master) return false;
    struct live_others others = live_look_at_others(live, client_connection(r));
    size_t stays = excess->bytes > others.going ? excess->bytes - others.going : 0;
    return stays <= excess->limit || excess->own < excess->limit / others.n ||
           (others.has_larger && stays / 2 <= excess->limit);
}

/* A listing of a directory writes 25 times a file. So a request that has not grown since the last look may
 * write this often until the next one, or until its own pool, without those below, holds more than ever. */
enum { CALM_WRITES = 7 };

static void note_growth(struct live *live, size_t bytes)
{
    live->calm = bytes <= live->looked ? CALM_WRITES : 0;
    live->looked = bytes;
    live->own_peak = reapPeakBytes(apr_pool_reap(live->pool));
}

static bool is_calm(struct live *live)
{
    if (live->is_ended || !live->calm) return false;
    live->calm--;
    return reapPeakBytes(apr_pool_reap(live->pool)) <= live->own_peak;
}

/* in_hand: bytes outside of pools, in the brigade that passes. */
static struct excess look(request_rec *r, struct live *live, size_t in_hand)
{
    struct excess excess = {"ReapLimitRequest", 0, settings_request_limit(r), 0};
    size_t own = excess.limit ? live_look(live) : 0, all = 0;
    if (excess.limit) excess.bytes = own + in_hand;
    if (excess.bytes <= excess.limit) {
        excess = (struct excess){"ReapLimitConnection", 0, settings_connection_limit(r->server), 0};
        if (excess.limit) excess.bytes = (all = library_held(client_connection(r)->pool)) + in_hand;
        if (excess.bytes > excess.limit) excess.own = live_look(live) + in_hand;
        if (excess.bytes > excess.limit && is_spared(r, live, &excess)) excess.bytes = 0;
    }
    note_growth(live, own + all);
    if (excess.bytes <= excess.limit || is_exempt(r)) excess.name = NULL;
    return excess;
}

static bool has_limits(const request_rec *r)
{
    return settings_any_limits() && (settings_request_limit(r) || settings_connection_limit(r->server)) &&
           !library_lacks();
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

/* action: what becomes of it. */
static void tell(request_rec *r, struct live *live, const struct excess *excess, enum action action)
{
    static const char *const outcomes[] = {"denied", "connection closed", "goes on"};
    bool is_connection = excess->name[sizeof "ReapLimit" - 1] == 'C';
    if (live->is_logged) return;
    live->is_logged = true;
    void **reap = apr_pool_reap(is_connection ? client_connection(r)->pool : live->pool);
    board_count((enum board_counter)((is_connection ? COUNT_CONNECTION : COUNT_REQUEST) + (int)action));
    struct text tags = pools_largest_tags(reap, 5);
    const char *own = "";
    if (is_connection) own = apr_psprintf(r->pool, "%" APR_SIZE_T_FMT " of its connection's ", excess->own);
    board_count(COUNT_EXCESSES);
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                  "%s %s holds %s%" APR_SIZE_T_FMT " bytes, over %s %" APR_SIZE_T_FMT
                  " (%s); largest pools: %s",
                  live->method, live->uri, own, excess->bytes, excess->name, excess->limit, outcomes[action],
                  tags.data ? tags.data : "unknown");
    text_free(&tags);
    if (settings_of_request(r).reports & REPORT_LIMIT) report_pools(r, reap);
    if (board_takes_minute()) strike_tell(r->server, reap);
}

/* --- ending a request ---------------------------------------------------------------------------- */

/* The request whose answer has begun, or else the last one that it was redirected to. */
static request_rec *answering(const struct live *live)
{
    request_rec *r = live->top;
    while (r->next && !r->sent_bodyct) r = r->next;
    return r;
}

/* An error in the stream of output: httpd makes a page of it if headers are not out, and a stream of HTTP/2
 * is reset else. Filters of the content do not see it: what they hold is not to be sent. It goes out at once.
 */
static void pass_error(request_rec *r, int status)
{
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, alloc);
    while (r->main) r = r->main;
    APR_BRIGADE_INSERT_TAIL(brigade, ap_bucket_error_create(status, NULL, r->pool, alloc));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(alloc));
    ap_pass_brigade(r->proto_output_filters, brigade);
    apr_brigade_cleanup(brigade);
    ap_fflush(r->connection->output_filters, brigade);
}

/* An answer with neither a length nor chunks ends with its connection. Only a reset says that it is not
 * whole. */
static void reset_unframed(const request_rec *r)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    apr_os_sock_t socket;
    if (r->chunked || apr_table_get(r->headers_out, "Content-Length")) return;
    if (apr_os_sock_get(&socket, ap_get_conn_socket(r->connection)) == APR_SUCCESS)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

/* The client gets an error page with this status; with 0, no answer, or not all of it. From then on it is
 * gone, as far as the handler and filters can see: httpd's calls that write fail, by whatever way, and
 * nothing is sent. A stream of HTTP/2 has a connection of its own here; that of the client goes on. */
static void end_request(request_rec *r, struct live *live, int status)
{
    conn_rec *c = r->connection;
    __atomic_store_n(&live->is_ended, true, __ATOMIC_RELAXED);
    live->denied = status;
    live->ended_with = live->peak;
    if (status)
        pass_error(r, status);
    else if (answering(live)->sent_bodyct && c->master)
        pass_error(r, HTTP_BAD_GATEWAY);
    else if (answering(live)->sent_bodyct)
        reset_unframed(answering(live));
    c->keepalive = AP_CONN_CLOSE;
    live->is_cut_off = status && !c->aborted;
    c->aborted = 1;
}

/* Whether the request is beyond a limit, and was ended. status is what the client gets where the
 * administrator wants no other. */
static bool end_beyond_limit(request_rec *r, struct live *live, size_t in_hand, int status)
{
    struct excess excess = look(r, live, in_hand);
    if (!excess.name) return false;
    struct request_settings settings = settings_of_request(r);
    if (settings.action == ACTION_LOG) {
        tell(r, live, &excess, ACTION_LOG);
        return false;
    }
    bool denies = settings.action == ACTION_DENY && !answering(live)->sent_bodyct;
    tell(r, live, &excess, denies ? ACTION_DENY : ACTION_CLOSE);
    end_request(r, live, !denies ? 0 : settings.status ? settings.status : status);
    return true;
}

/* A handler that goes on is told of: only ReapLimitHard ends it.
 * The page went to a client that is still there: it may have more to say before its connection is closed. */
void limit_end(request_rec *r, const struct live *live)
{
    if (!live->is_ended) return;
    if (live->peak / 2 > live->ended_with)
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r,
                      "%s %s went on after it was ended for its limit, to %" APR_SIZE_T_FMT
                      " bytes: its handler does not heed errors when it writes",
                      live->method, live->uri, live->peak);
    if (live->is_cut_off) r->connection->aborted = 0;
    for (; r; r = r->next) {
        apr_table_setn(r->notes, "reap-limit", live->denied ? "denied" : "closed");
        if (live->denied) r->status = live->denied; /* whatever the handler made of it since */
    }
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

static bool ends_in_filter(request_rec *r, const apr_bucket_brigade *brigade, int status)
{
    struct live *live = live_of(r);
    live_enter(live);
    return live->is_ended || end_beyond_limit(r, live, bytes_in_hand(brigade), status);
}

/* The few bytes of an ap_rputs. */
static bool is_piece(const apr_bucket_brigade *brigade)
{
    const apr_bucket *first = APR_BRIGADE_FIRST(brigade);
    return APR_BUCKET_IS_TRANSIENT(first) && first == APR_BRIGADE_LAST(brigade);
}

/* Pieces are gathered as httpd's own buffer gathers them. */
static apr_status_t pass_on(ap_filter_t *f, apr_bucket_brigade *brigade, bool piece)
{
    const char *bytes;
    apr_size_t n;
    if (piece && apr_bucket_read(APR_BRIGADE_FIRST(brigade), &bytes, &n, APR_BLOCK_READ) == APR_SUCCESS)
        return ap_fwrite(f->next, f->ctx, bytes, n);
    APR_BRIGADE_PREPEND(brigade, (apr_bucket_brigade *)f->ctx);
    return ap_pass_brigade(f->next, brigade);
}

static apr_status_t output_filter(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    bool piece = f->ctx && !APR_BRIGADE_EMPTY(brigade) && is_piece(brigade);
    bool looks = f->ctx && !(piece && is_calm(live_of(f->r)));
    bool ends = looks && ends_in_filter(f->r, brigade, HTTP_INTERNAL_SERVER_ERROR);
    if (f->ctx && !ends) return pass_on(f, brigade, piece);
    apr_brigade_cleanup(brigade);
    return ends ? AP_FILTER_ERROR : APR_SUCCESS;
}

static apr_status_t input_filter(ap_filter_t *f, apr_bucket_brigade *brigade, ap_input_mode_t mode,
                                 apr_read_type_e block, apr_off_t bytes)
{
    if (live_of(f->r)->is_ended) return AP_FILTER_ERROR;
    apr_status_t status = ap_get_brigade(f->next, brigade, mode, block, bytes);
    if (status != APR_SUCCESS) return status;
    bool has_body = !APR_BRIGADE_EMPTY(brigade) && !APR_BUCKET_IS_METADATA(APR_BRIGADE_FIRST(brigade));
    if (!has_body || !ends_in_filter(f->r, brigade, HTTP_REQUEST_ENTITY_TOO_LARGE)) return APR_SUCCESS;
    apr_brigade_cleanup(brigade);
    return AP_FILTER_ERROR;
}

/* httpd gathers what ap_rputs and its like write in a filter that it puts before all others when it needs it.
 * It comes now, by a flush that ends in our filter, and ours goes before it: so each of these calls is seen.
 */
static void go_first(request_rec *r, ap_filter_t *ours)
{
    ap_filter_t *buffer;
    if (r->output_filters != ours) return;
    ap_rflush(r);
    buffer = r->output_filters;
    if (buffer->next != ours) return;
    buffer->next = ours->next;
    ours->next = buffer;
    r->output_filters = ours;
}

static ap_filter_rec_t *output, *input;

static void insert_filters(request_rec *r)
{
    struct live *live = live_of(r);
    if (!live || live->is_ended || !has_limits(r)) return;
    ap_filter_t *ours = ap_add_output_filter_handle(output, NULL, r, r->connection);
    go_first(r, ours);
    ours->ctx = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    if (!r->main) ap_add_input_filter_handle(input, NULL, r, r->connection);
}

/* --- phases -------------------------------------------------------------------------------------- */

/* The allocation fails when this returns. Any thread with a pool below the request's may be the one. */
static void note_refusal(void **reap, size_t size, void *arg)
{
    struct live *live = arg;
    (void)reap;
    __atomic_store_n(&live->refused, size, __ATOMIC_RELAXED);
}

/* The hard limit of the section that the request is in by now. It is the library's: the allocation that
 * exceeds it fails, and httpd ends the child. */
static void set_hard_limit(request_rec *r)
{
    struct live *live = live_of(r);
    if (library_lacks() || !live || r->main) return;
    size_t limit = is_exempt(r) ? 0 : (size_t)settings_of_request(r).hard;
    if (live->hard == limit) return;
    if (reapSetLimit(apr_pool_reap(r->pool), limit) != 0) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "holds more than ReapLimitHard already");
        return;
    }
    if (limit) reapOnLimit(apr_pool_reap(r->pool), note_refusal, live);
    live->hard = limit;
}

/* A subrequest is its main request's affair; that one meets the filters. */
static int check_in_phase(request_rec *r)
{
    struct live *live = r->main ? NULL : live_of(r);
    if (!live || live->is_ended) return DECLINED;
    live_enter(live);
    if (!has_limits(r) || !end_beyond_limit(r, live, 0, HTTP_INTERNAL_SERVER_ERROR)) return DECLINED;
    return AP_FILTER_ERROR; /* the answer is out */
}

/* Before a request is ended by its server's limit, its location has its word: it may have another one, or be
 * reap-status. httpd walks anew when the path has been translated. */
static int check_after_header(request_rec *r)
{
    ap_conf_vector_t *of_server = r->per_dir_config;
    struct live *live = has_limits(r) ? live_of(r) : NULL;
    if (live && !r->main && r->uri && look(r, live, 0).name) ap_location_walk(r);
    int result = check_in_phase(r);
    r->per_dir_config = of_server;
    return result;
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
    if (live && live->served && board_own_slot()) {
        live->served->bytes = live->refused ? live->hard : library_held(live->pool);
        board_own_slot()->limit = live->refused ? live->hard : 0;
        board_own_slot()->fatal = live->served;
    }
    if (live && live->refused) {
        board_count(COUNT_HARD);
        ap_log_error(APLOG_MARK, APLOG_CRIT, 0, live->top->server,
                     "%s %s from %s wants %" APR_SIZE_T_FMT " bytes more, over ReapLimitHard %" APR_SIZE_T_FMT
                     "; this child ends",
                     live->method, live->uri, live->client, live->refused, live->hard);
    } else if (live) {
        ap_log_error(APLOG_MARK, APLOG_CRIT, APR_ENOMEM, live->top->server,
                     "no memory for %s %s from %s; this child ends", live->method, live->uri, live->client);
    }
    if (live && board_takes_minute())
        strike_tell(live->top->server, live->refused ? apr_pool_reap(live->pool) : NULL);
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
    output = ap_register_output_filter("REAP_LIMIT", output_filter, NULL, AP_FTYPE_RESOURCE - 1);
    input = ap_register_input_filter("REAP_LIMIT_IN", input_filter, NULL, AP_FTYPE_RESOURCE - 1);
    ap_hook_insert_filter(insert_filters, NULL, NULL, APR_HOOK_LAST);
    ap_hook_post_read_request(check_after_header, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_header_parser(check_in_phase, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_fixups(fixups, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_handler(check_in_phase, NULL, NULL, APR_HOOK_REALLY_FIRST);
}
