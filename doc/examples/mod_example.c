/* SPDX-License-Identifier: Apache-2.0 */
/* mod_example: a module of httpd that loads everywhere, and uses what reaps add to pools where they are
 * there.
 *
 *     apxs -c $(pkg-config --cflags reap) mod_example.c
 *     LoadModule example_module .libs/mod_example.so
 *     <Location /sort>
 *         SetHandler example-sort
 *     </Location>
 *
 *     curl --data-binary @words http://localhost/sort      the lines of a file, sorted
 *     curl http://localhost/sort                           what the connection's pools hold
 *
 * The body comes in pieces, so the buffer for it doubles. On stock pools each old buffer stays until the
 * request ends. On reaps (httpd with libreap-apr preloaded) a buffer grows in place or goes back at once, and
 * the response's header X-Pool says so. No call needs a test, but those of reap.h.
 */
#include <httpd.h>

#include <apr_strings.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_request.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAP_APR_OPTIONAL
#include <apr_reap.h>
#include <reap.h>

struct text {
    char *bytes; /* NULL: none yet */
    size_t size, room;
};

/* Room for that many more bytes; the buffer doubles. */
static int make_room(apr_pool_t *pool, struct text *text, size_t more)
{
    size_t room = text->room ? text->room : 8192;
    while (room - text->size < more) room *= 2;
    if (room == text->room) return 1;
    char *bytes = apr_prealloc_sized(pool, text->bytes, text->size, room);
    if (!bytes) return 0;
    text->bytes = bytes;
    text->room = room;
    return 1;
}

enum { PIECE = 8192 };

/* Adds at most PIECE bytes of the body; false at its end. */
static int take_piece(apr_bucket_brigade *brigade, struct text *body)
{
    apr_size_t got = PIECE;
    int more = !APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(brigade));
    apr_brigade_flatten(brigade, body->bytes + body->size, &got);
    apr_brigade_cleanup(brigade);
    body->size += got;
    return more;
}

/* OK, or the status to answer with. A filter may refuse the body: httpd's own beyond LimitRequestBody, or
 * that of mod_reap. Its error has the status, or says that the answer is out; ap_get_client_block, which is
 * shorter, would lose it. */
static int read_body(request_rec *r, struct text *body)
{
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    do {
        if (body->size > INT_MAX / 2) return HTTP_REQUEST_ENTITY_TOO_LARGE;
        if (!make_room(r->pool, body, PIECE + 1)) return HTTP_INTERNAL_SERVER_ERROR;
        apr_status_t status =
            ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES, APR_BLOCK_READ, PIECE);
        if (status != APR_SUCCESS) return ap_map_http_request_error(status, HTTP_BAD_REQUEST);
    } while (take_piece(brigade, body));
    if (body->size > 0 && body->bytes[body->size - 1] != '\n') body->bytes[body->size++] = '\n';
    return OK;
}

struct line {
    const char *start;
    size_t size; /* with its newline */
};

static int compare(const void *a, const void *b)
{
    const struct line *one = a, *other = b;
    size_t shorter = one->size < other->size ? one->size : other->size;
    int order = memcmp(one->start, other->start, shorter);
    return order != 0 ? order : (one->size > other->size) - (one->size < other->size);
}

/* Copies the lines in their order to sorted, which has the room. */
static int sort(apr_pool_t *pool, const struct text *body, char *sorted)
{
    size_t lines = 0, i = 0;
    const char *end = body->bytes + body->size;
    for (const char *p = body->bytes; p < end; p++) lines += *p == '\n';
    struct line *line = apr_palloc(pool, lines * sizeof *line);
    if (!line) return 0;
    for (const char *p = body->bytes; p < end; p += line[i++].size)
        line[i] = (struct line){p, (size_t)((const char *)memchr(p, '\n', (size_t)(end - p)) + 1 - p)};
    qsort(line, lines, sizeof *line, compare);
    for (i = 0; i < lines; i++) sorted = (char *)memcpy(sorted, line[i].start, line[i].size) + line[i].size;
    apr_pfree(pool, line);
    return 1;
}

/* The header X-Pool: what the request's pool holds now, and at most held. */
static void tell_figures(request_rec *r)
{
    const char *figures = "stock";
    if (apr_reap_loaded()) {
        struct reap_stats stats;
        reapStats(apr_pool_reap(r->pool), &stats);
        figures = apr_psprintf(
            r->pool, "%" APR_SIZE_T_FMT " bytes live, %" APR_SIZE_T_FMT " in chunks, peak %" APR_SIZE_T_FMT,
            stats.live_bytes, stats.chunk_bytes, stats.peak_chunk_bytes);
    }
    apr_table_setn(r->headers_out, "X-Pool", figures);
}

static int answer_sorted(request_rec *r)
{
    struct text body = {0};
    int status = read_body(r, &body);
    if (status != OK || body.size == 0) return status;
    char *sorted = apr_palloc(r->pool, body.size);
    if (!sorted || !sort(r->pool, &body, sorted)) return HTTP_INTERNAL_SERVER_ERROR;
    apr_pfree(r->pool, body.bytes);
    tell_figures(r);
    ap_rwrite(sorted, (int)body.size, r);
    return OK;
}

/* The tree of pools that this thread may look at: the connection's, with its requests. */
static int answer_report(request_rec *r)
{
    char *report = NULL;
    size_t size = 0;
    FILE *out = apr_reap_loaded() ? open_memstream(&report, &size) : NULL;
    if (!out) return ap_rputs("stock pools\n", r) < 0 ? HTTP_INTERNAL_SERVER_ERROR : OK;
    reapReport(apr_pool_reap(r->connection->pool), out);
    fclose(out);
    ap_rwrite(report, (int)size, r);
    free(report);
    return OK;
}

static int handler(request_rec *r)
{
    if (!r->handler || strcmp(r->handler, "example-sort") != 0) return DECLINED;
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, M_POST, -1);
    ap_set_content_type(r, "text/plain");
    if (r->method_number == M_POST) return answer_sorted(r);
    return r->method_number == M_GET ? answer_report(r) : HTTP_METHOD_NOT_ALLOWED;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA example_module = {STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL,
                                                register_hooks,          0};
