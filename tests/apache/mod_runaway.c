/* SPDX-License-Identifier: Apache-2.0 */
/* mod_runaway: requests that take more memory than they should, for the tests of mod_reap.
 *
 * The handler runaway does what the query says, word by word between `&`:
 *     grow=N      takes N pieces of 64 KiB, and passes a line of output after each
 *     quiet=N     takes N pieces and passes nothing
 *     small=N     takes N pieces of 1000 bytes and passes nothing
 *     below=N     as grow, in a subpool with the tag runaway-subpool
 *     send=N      passes N lines
 *     read        keeps the whole body of the request in the pool, and says how long it was
 *     sleep=N     waits N milliseconds
 *     deaf        errors of ap_pass_brigade mean nothing to it from here on
 * A URI that begins with /early takes the query's number of pieces before there is a handler.
 */
#include <httpd.h>

#include <apr_strings.h>
#include <apr_time.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdbool.h>
#include <string.h>
#include <util_filter.h>

enum { PIECE = 64 << 10, SMALL = 1000 };

extern module AP_MODULE_DECLARE_DATA runaway_module __attribute__((visibility("default")));

struct run {
    request_rec *r;
    bool deaf;
};

static void take(apr_pool_t *pool, size_t size) { memset(apr_palloc(pool, size), 1, size); }

static bool say(struct run *run, const char *line)
{
    conn_rec *c = run->r->connection;
    apr_bucket_brigade *brigade = apr_brigade_create(run->r->pool, c->bucket_alloc);
    apr_brigade_puts(brigade, NULL, NULL, line);
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_flush_create(c->bucket_alloc));
    apr_status_t status = ap_pass_brigade(run->r->output_filters, brigade);
    apr_brigade_destroy(brigade);
    return status == APR_SUCCESS || run->deaf;
}

static bool grow(struct run *run, apr_pool_t *pool, int n)
{
    while (n-- > 0) {
        take(pool, PIECE);
        if (!say(run, "grown\n")) return false;
    }
    return true;
}

static bool grow_below(struct run *run, int n)
{
    apr_pool_t *pool;
    apr_pool_create(&pool, run->r->pool);
    apr_pool_tag(pool, "runaway-subpool");
    return grow(run, pool, n);
}

static int keep_body(struct run *run)
{
    request_rec *r = run->r;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_off_t length = 0;
    for (bool end = false; !end;) {
        apr_size_t n;
        char *data;
        apr_status_t status =
            ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES, APR_BLOCK_READ, PIECE);
        if (status != APR_SUCCESS) return ap_map_http_request_error(status, HTTP_BAD_REQUEST);
        end = APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(brigade));
        if (apr_brigade_pflatten(brigade, &data, &n, r->pool) != APR_SUCCESS)
            return HTTP_INTERNAL_SERVER_ERROR;
        length += (apr_off_t)n;
        apr_brigade_cleanup(brigade);
    }
    say(run, apr_psprintf(r->pool, "read %" APR_OFF_T_FMT "\n", length));
    return OK;
}

/* OK; or what the handler returns at once. */
static int step(struct run *run, const char *word)
{
    const char *value = strchr(word, '=');
    int n = value ? atoi(value + 1) : 0;
    bool well = true;
    if (strncmp(word, "grow", 4) == 0)
        well = grow(run, run->r->pool, n);
    else if (strncmp(word, "below", 5) == 0)
        well = grow_below(run, n);
    else if (strncmp(word, "quiet", 5) == 0)
        while (n-- > 0) take(run->r->pool, PIECE);
    else if (strncmp(word, "small", 5) == 0)
        while (n-- > 0) take(run->r->pool, SMALL);
    else if (strncmp(word, "send", 4) == 0)
        while (well && n-- > 0) well = say(run, "sent\n");
    else if (strncmp(word, "sleep", 5) == 0)
        apr_sleep((apr_interval_time_t)n * 1000);
    else if (strcmp(word, "deaf") == 0)
        run->deaf = true;
    else if (strcmp(word, "read") == 0)
        return keep_body(run);
    return well ? OK : AP_FILTER_ERROR;
}

static int handler(request_rec *r)
{
    if (!r->handler || strcmp(r->handler, "runaway") != 0) return DECLINED;
    struct run run = {.r = r};
    char *rest = apr_pstrdup(r->pool, r->args ? r->args : ""), *word;
    ap_set_content_type(r, "text/plain");
    while ((word = apr_strtok(rest, "&", &rest))) {
        int status = step(&run, word);
        if (status != OK) return status;
    }
    say(&run, "done\n");
    return OK;
}

static int before_handler(request_rec *r)
{
    if (strncmp(r->uri, "/early", 6) != 0 || !r->args || r->prev) return DECLINED;
    for (int n = atoi(r->args); n > 0; n--) take(r->pool, PIECE);
    return DECLINED;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_header_parser(before_handler, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA runaway_module = {STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL,
                                                register_hooks,          0};
