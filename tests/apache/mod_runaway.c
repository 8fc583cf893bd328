/* SPDX-License-Identifier: Apache-2.0 */
/* mod_runaway: requests that take more memory than they should, for the tests of mod_reap.
 *
 * The handler runaway does what the query says, word by word between `&`:
 *     grow=N      takes N pieces of 64 KiB, and passes a line of output after each
 *     quiet=N     takes N pieces and passes nothing
 *     small=N     takes N pieces of 1000 bytes and passes nothing
 *     malloc=N    takes N pieces by malloc, and frees them when the request ends
 *     leak=N      takes N pieces from malloc, and never gives them back
 *     below=N     as grow, in a subpool with the tag runaway-subpool
 *     begin       passes a line, whose brigade has a flush bucket: the first bytes are out
 *     send=N      passes N lines
 *     read        keeps the whole body of the request in the pool, and says how long it was
 *     sleep=N     waits N milliseconds
 *     twice       frees an object twice, which ends the child where pools are on reaps
 *     stay=N      waits until the file /stay of the site is gone, for N milliseconds at most
 *     by=WAY      writes by that call of httpd from here on, lines of 200 bytes: the table `ways` below
 *     deaf        errors of these calls mean nothing to it from here on
 *     inside      does the rest in an internal redirect, and writes ten lines more afterwards
 *     status=N    is what the handler returns at its end, or when it heard of an error
 * A URI that begins with /early takes the query's number of pieces before there is a handler.
 * A request with the header Take: N takes N pieces in the place of its handler, which comes next. The output
 * filter RUNAWAY takes a piece for each brigade.
 * A request with the header Configure: NAME reads the directives of this file of the site before its fixups,
 * as mod_perl's add_config does; what is wrong with them goes to the error log, and the status is 500.
 */
#include <httpd.h>

#include <apr_file_info.h>
#include <apr_mmap.h>
#include <apr_strings.h>
#include <apr_time.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <util_filter.h>

#define REAP_APR_OPTIONAL
#include "apr_reap.h"

enum { PIECE = 64 << 10, SMALL = 1000 };

APLOG_USE_MODULE(runaway);
extern module AP_MODULE_DECLARE_DATA runaway_module __attribute__((visibility("default")));

static void take(apr_pool_t *pool, size_t size) { memset(apr_palloc(pool, size), 1, size); }

/* --- ways to write ------------------------------------------------------------------------------- */

static apr_bucket_brigade *brigade_of(request_rec *r)
{
    return apr_brigade_create(r->pool, r->connection->bucket_alloc);
}

static bool pass_to(ap_filter_t *to, request_rec *r, const char *line)
{
    apr_bucket_brigade *brigade = brigade_of(r);
    apr_brigade_puts(brigade, NULL, NULL, line);
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_flush_create(r->connection->bucket_alloc));
    apr_status_t status = ap_pass_brigade(to, brigade);
    apr_brigade_destroy(brigade);
    return status == APR_SUCCESS;
}

static bool by_pass(request_rec *r, const char *line) { return pass_to(r->output_filters, r, line); }

/* Past the filters that a handler should know of. */
static bool by_proto(request_rec *r, const char *line) { return pass_to(r->proto_output_filters, r, line); }

static bool by_puts(request_rec *r, const char *line) { return ap_rputs(line, r) >= 0; }

static bool by_write(request_rec *r, const char *line) { return ap_rwrite(line, (int)strlen(line), r) >= 0; }

static bool by_putc(request_rec *r, const char *line)
{
    while (*line && ap_rputc(*line, r) >= 0) line++;
    return !*line;
}

static bool by_printf(request_rec *r, const char *line) { return ap_rprintf(r, "%s", line) >= 0; }

static bool by_vputs(request_rec *r, const char *line) { return ap_rvputs(r, line, "", NULL) >= 0; }

static bool by_flush(request_rec *r, const char *line) { return ap_rputs(line, r) >= 0 && ap_rflush(r) >= 0; }

/* A brigade of the handler's own, which ap_fwrite passes when it has 8000 bytes. */
static bool by_fwrite(request_rec *r, const char *line)
{
    void *brigade = NULL;
    apr_pool_userdata_get(&brigade, "runaway", r->pool);
    if (!brigade) apr_pool_userdata_setn(brigade = brigade_of(r), "runaway", NULL, r->pool);
    return ap_fwrite(r->output_filters, brigade, line, strlen(line)) == APR_SUCCESS;
}

/* The rest of that brigade. */
static void by_fwrite_end(request_rec *r)
{
    void *brigade = NULL;
    apr_pool_userdata_get(&brigade, "runaway", r->pool);
    if (brigade) ap_pass_brigade(r->output_filters, brigade);
}

static apr_file_t *open_page(request_rec *r)
{
    apr_file_t *file;
    const char *name = apr_pstrcat(r->pool, ap_document_root(r), "/large.txt", NULL);
    return apr_file_open(&file, name, APR_READ, APR_OS_DEFAULT, r->pool) == APR_SUCCESS ? file : NULL;
}

static bool by_fd(request_rec *r, const char *line)
{
    apr_size_t sent;
    apr_file_t *file = open_page(r);
    return file && ap_send_fd(file, r, 0, strlen(line), &sent) == APR_SUCCESS;
}

/* This call tells of no error. */
static bool by_mmap(request_rec *r, const char *line)
{
    apr_mmap_t *map;
    apr_file_t *file = open_page(r);
    if (!file || apr_mmap_create(&map, file, 0, strlen(line), APR_MMAP_READ, r->pool) != APR_SUCCESS)
        return false;
    ap_send_mmap(map, r, 0, strlen(line));
    return true;
}

static const struct way {
    const char *name;
    bool (*write)(request_rec *r, const char *line);
} ways[] = {
    {"pass", by_pass},     {"proto", by_proto},   {"puts", by_puts},   {"write", by_write},
    {"putc", by_putc},     {"printf", by_printf}, {"vputs", by_vputs}, {"flush", by_flush},
    {"fwrite", by_fwrite}, {"fd", by_fd},         {"mmap", by_mmap},
};

/* --- the handler --------------------------------------------------------------------------------- */

struct run {
    request_rec *r;
    const struct way *way; /* NULL: by_pass, short lines */
    int status;
    bool deaf;
};

static bool say(struct run *run, const char *line)
{
    bool well = run->way ? run->way->write(run->r, apr_psprintf(run->r->pool, "%-199.199s\n", line))
                         : by_pass(run->r, line);
    return well || run->deaf;
}

static const struct way *way_of(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(name, ways[i].name) == 0) return &ways[i];
    return NULL;
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
        if (status != APR_SUCCESS)
            return run->status ? run->status : ap_map_http_request_error(status, HTTP_BAD_REQUEST);
        end = APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(brigade));
        if (apr_brigade_pflatten(brigade, &data, &n, r->pool) != APR_SUCCESS)
            return HTTP_INTERNAL_SERVER_ERROR;
        length += (apr_off_t)n;
        apr_brigade_cleanup(brigade);
    }
    say(run, apr_psprintf(r->pool, "read %" APR_OFF_T_FMT "\n", length));
    return OK;
}

static apr_status_t free_piece(void *piece)
{
    free(piece);
    return APR_SUCCESS;
}

static void take_of_malloc(request_rec *r, int n)
{
    for (; n > 0; n--) {
        void *volatile piece = malloc(PIECE);
        if (piece) apr_pool_cleanup_register(r->pool, piece, free_piece, apr_pool_cleanup_null);
    }
}

/* In a list, so that no tool takes it for lost. */
static void leak(int n)
{
    static void *volatile last;
    while (n-- > 0) {
        void **piece = malloc(PIECE);
        if (!piece) return;
        memset(piece, 1, PIECE);
        *piece = __atomic_exchange_n(&last, piece, __ATOMIC_RELAXED);
    }
}

static void free_twice(apr_pool_t *pool)
{
    void *object = apr_palloc(pool, 100);
    apr_pfree(pool, object);
    apr_pfree(pool, object);
}

static void stay(request_rec *r, int most)
{
    apr_finfo_t info;
    const char *file = apr_pstrcat(r->pool, ap_document_root(r), "/stay", NULL);
    for (; most > 0 && apr_stat(&info, file, APR_FINFO_TYPE, r->pool) == APR_SUCCESS; most -= 20)
        apr_sleep(20000);
}

/* Does the words in a request that this one becomes, which is over before this handler is. */
static bool redirect(struct run *run, const char *words)
{
    bool well = true;
    const char *way = run->way ? apr_pstrcat(run->r->pool, "by=", run->way->name, "&", NULL) : "";
    ap_internal_redirect(apr_pstrcat(run->r->pool, "/runaway/inside?", way, words, NULL), run->r);
    for (int n = 10; well && n > 0; n--) well = say(run, "afterwards\n");
    return well;
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
    else if (strncmp(word, "leak", 4) == 0)
        leak(n);
    else if (strncmp(word, "small", 5) == 0)
        while (n-- > 0) take(run->r->pool, SMALL);
    else if (strncmp(word, "malloc", 6) == 0)
        take_of_malloc(run->r, n);
    else if (strncmp(word, "send", 4) == 0)
        while (well && n-- > 0) well = say(run, "sent\n");
    else if (strncmp(word, "sleep", 5) == 0)
        apr_sleep((apr_interval_time_t)n * 1000);
    else if (strcmp(word, "twice") == 0)
        free_twice(run->r->pool);
    else if (strncmp(word, "stay", 4) == 0)
        stay(run->r, n);
    else if (strcmp(word, "deaf") == 0)
        run->deaf = true;
    else if (strncmp(word, "by", 2) == 0)
        return (run->way = way_of(value + 1)) ? OK : HTTP_BAD_REQUEST;
    else if (strncmp(word, "status", 6) == 0)
        run->status = n;
    else if (strcmp(word, "begin") == 0)
        well = by_pass(run->r, "begun\n");
    else if (strcmp(word, "read") == 0)
        return keep_body(run);
    if (well) return OK;
    return run->status ? run->status : AP_FILTER_ERROR;
}

static int handler(request_rec *r)
{
    if (!r->handler || strcmp(r->handler, "runaway") != 0) return DECLINED;
    struct run run = {.r = r};
    char *rest = apr_pstrdup(r->pool, r->args ? r->args : ""), *word;
    ap_set_content_type(r, "text/plain");
    while ((word = apr_strtok(rest, "&", &rest))) {
        if (strcmp(word, "inside") == 0) return redirect(&run, rest) ? OK : AP_FILTER_ERROR;
        int status = step(&run, word);
        if (status != OK) return status;
    }
    say(&run, "done\n");
    if (run.way && run.way->write == by_fwrite) by_fwrite_end(r);
    return run.status;
}

/* RUNAWAY_LEAK=N in the environment: each child begins with so many pieces of malloc's. */
static void child_init(apr_pool_t *pool, server_rec *server)
{
    const char *pieces = getenv("RUNAWAY_LEAK");
    (void)pool, (void)server;
    if (pieces) leak(atoi(pieces));
}

static int before_handler(request_rec *r)
{
    if (strncmp(r->uri, "/early", 6) != 0 || !r->args || r->prev) return DECLINED;
    for (int n = atoi(r->args); n > 0; n--) take(r->pool, PIECE);
    return DECLINED;
}

static int take_first(request_rec *r)
{
    const char *pieces = apr_table_get(r->headers_in, "Take");
    if (pieces && ap_is_initial_req(r))
        for (int n = atoi(pieces); n > 0; n--) take(r->pool, PIECE);
    return DECLINED;
}

static int configure(request_rec *r)
{
    const char *name = apr_table_get(r->headers_in, "Configure"), *wrong;
    ap_directive_t *tree = NULL;
    ap_conf_vector_t *own = ap_create_per_dir_config(r->pool);
    cmd_parms parms = {.pool = r->pool, .temp_pool = r->pool, .server = r->server};
    if (!name || !ap_is_initial_req(r)) return DECLINED;
    name = apr_pstrcat(r->pool, ap_document_root(r), "/", name, NULL);
    parms.override = RSRC_CONF | ACCESS_CONF | OR_ALL;
    parms.override_opts = OPT_ALL;
    parms.limited = -1;
    if (ap_pcfg_openfile(&parms.config_file, r->pool, name) != APR_SUCCESS) return HTTP_NOT_FOUND;
    wrong = ap_build_config(&parms, r->pool, r->pool, &tree);
    ap_cfg_closefile(parms.config_file);
    if (!wrong) wrong = ap_walk_config(tree, &parms, own);
    if (wrong) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "configured: %s", wrong);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    r->per_dir_config = ap_merge_per_dir_configs(r->pool, r->per_dir_config, own);
    return DECLINED;
}

static apr_status_t take_for_brigade(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    take(f->r->pool, PIECE);
    return ap_pass_brigade(f->next, brigade);
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_register_output_filter("RUNAWAY", take_for_brigade, NULL, AP_FTYPE_RESOURCE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(take_first, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_header_parser(before_handler, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_fixups(configure, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA runaway_module = {STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL,
                                                register_hooks,          0};
