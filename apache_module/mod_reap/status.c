/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include "documents.h"
#include "form.h"
#include "library.h"
#include "settings.h"

#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_status.h>
#include <stdlib.h>

APLOG_USE_MODULE(reap);

/* data is malloc's, and goes when it has been sent. */
static int send_data(request_rec *r, const char *type, char *data, size_t length)
{
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, alloc);
    ap_set_content_type(r, type);
    ap_set_content_length(r, (apr_off_t)length);
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_heap_create(data, length, free, alloc));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(alloc));
    ap_pass_brigade(r->output_filters, brigade); /* a client that is gone is no error of ours */
    return OK;
}

static int send_document(request_rec *r, const struct form *form)
{
    size_t length;
    char *data = documents_get(form->document, &length);
    if (data) return send_data(r, form->type, data, length);
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "no look at the children within 2 seconds, or no memory");
    apr_table_setn(r->err_headers_out, "Retry-After", "2");
    return HTTP_SERVICE_UNAVAILABLE;
}

/* The bytes of the page, and a zero: made by the Makefile. */
static const char page[] = {
#include "page_bytes.h"
    0};

static const char *first_of(const char *at)
{
    const char *script = strstr(at, "<script>"), *style = strstr(at, "<style>");
    return !script || (style && style < script) ? style : script;
}

static void write_page(struct text *text, const char *nonce)
{
    const char *at = page, *element;
    while ((element = first_of(at))) {
        const char *end = strchr(element, '>');
        text_add(text, at, (size_t)(end - at));
        text_printf(text, " nonce=\"%s\"", nonce);
        at = end;
    }
    text_puts(text, at);
}

/* A nonce lets the page's own script and style run, and nothing else. */
static const char *make_nonce(request_rec *r)
{
    unsigned char bytes[16];
    char *nonce = apr_palloc(r->pool, 2 * sizeof bytes + 1);
    if (apr_generate_random_bytes(bytes, sizeof bytes) != APR_SUCCESS) return NULL;
    ap_bin2hex(bytes, sizeof bytes, nonce);
    return nonce;
}

static void allow_page_only(request_rec *r, const char *nonce)
{
    apr_table_setn(r->headers_out, "Content-Security-Policy",
                   apr_psprintf(r->pool,
                                "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
                                "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                                "frame-ancestors 'self'",
                                nonce, nonce));
    apr_table_setn(r->headers_out, "Referrer-Policy", "no-referrer");
}

static int send_page(request_rec *r)
{
    const char *nonce = make_nonce(r);
    struct text text = {.data = NULL};
    if (nonce) write_page(&text, nonce);
    if (!nonce || text.failed) {
        text_free(&text);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    allow_page_only(r, nonce);
    return send_data(r, "text/html; charset=utf-8", text.data, text.length);
}

static int refuse_if_off(request_rec *r)
{
    if (settings_of_server(r->server).collects && board_is_open()) return OK;
    ap_log_rerror(APLOG_MARK, APLOG_NOTICE, 0, r, "reap-status is not there: %s",
                  board_is_open() || !settings_of_server(r->server).collects ? "ReapStatus is off here"
                                                                             : "there is no shared memory");
    return HTTP_NOT_FOUND;
}

bool status_is_handler(const char *name) { return name && strcmp(name, "reap-status") == 0; }

int status_handler(request_rec *r)
{
    if (!status_is_handler(r->handler)) return DECLINED;
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, -1); /* HEAD has the number of GET */
    if (r->method_number == M_OPTIONS) return DECLINED;
    if (r->method_number != M_GET) return HTTP_METHOD_NOT_ALLOWED;
    int refused = refuse_if_off(r);
    if (refused != OK) return refused;
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    const struct form *form = form_of(r->args);
    return form ? send_document(r, form) : send_page(r);
}

static void write_html(request_rec *r, char *lines)
{
    char *line, *rest = lines;
    ap_rputs("<hr>\n<h2>Pools on reaps</h2>\n<dl>\n", r);
    while ((line = apr_strtok(rest, "\n", &rest)))
        ap_rprintf(r, "<dt>%s</dt>\n", ap_escape_html(r->pool, line));
    if (library_lacks()) ap_rprintf(r, "<dt>%s</dt>\n", ap_escape_html(r->pool, library_lacks()));
    ap_rputs("</dl>\n", r);
}

int status_section(request_rec *r, int flags)
{
    size_t length;
    if (!board_is_open() || !settings_of_server(r->server).collects) return DECLINED;
    char *lines = documents_get(DOCUMENT_BRIEF, &length);
    if (!lines) return DECLINED;
    if (flags & AP_STATUS_SHORT)
        ap_rputs(lines, r);
    else
        write_html(r, lines);
    free(lines);
    return OK;
}
