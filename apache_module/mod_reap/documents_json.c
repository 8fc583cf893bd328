/* SPDX-License-Identifier: Apache-2.0 */
#include "documents_write.h"
#include "library.h"
#include "settings.h"

#include <ap_mpm.h>
#include <apr_strings.h>
#include <http_main.h>
#include <scoreboard.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 50, HOSTS = 50, MALLOCS = 200, GROWERS = 20 };

static void add_number(struct text *text, const char *name, int64_t number)
{
    if (number < 0)
        text_printf(text, ",\"%s\":null", name);
    else
        text_printf(text, ",\"%s\":%lld", name, (long long)number);
}

static void add_known(struct text *text, const char *name, uint64_t bytes)
{
    add_number(text, name, bytes ? (int64_t)bytes : -1);
}

static void add_who(struct text *text, const char *name, const struct board_request *request)
{
    char who[300];
    apr_snprintf(who, sizeof who, "%s %s from %s", request->method, request->uri, request->client);
    text_json_field(text, name, request->pid ? who : NULL);
}

static void add_sums(struct text *text, const struct pool_sums *sums)
{
    text_printf(text,
                "\"pools\":%zu,\"bytes\":%zu,\"live_bytes\":%zu,\"objects\":%zu,\"chunks\":%zu,"
                "\"inherited_bytes\":%zu",
                (size_t)sums->pools, (size_t)sums->bytes, (size_t)sums->live_bytes, (size_t)sums->objects,
                (size_t)sums->chunks, (size_t)sums->inherited);
}

/* --- the server ---------------------------------------------------------------------------------- */

static void add_server(struct text *text, const struct look *look)
{
    apr_time_t now = apr_time_now();
    const global_score *global = ap_exists_scoreboard_image() ? ap_scoreboard_image->global : NULL;
    text_puts(text, "\"server\":{\"version\":");
    text_json(text, ap_get_server_banner());
    text_json_field(text, "mpm", ap_show_mpm());
    text_printf(text, ",\"time\":%lld,\"uptime\":%lld,\"generation\":%d,\"processes\":%zu}",
                (long long)apr_time_sec(now),
                (long long)(global ? apr_time_sec(now - global->restart_time) : 0),
                global ? (int)global->running_generation : 0, look->n);
}

/* The main server's, whichever one was asked: all have this document. */
static void add_settings(struct text *text)
{
    struct request_settings settings = settings_of_main_server(ap_server_conf);
    size_t n;
    const struct limit_set *limits = settings_limits(&n);
    text_printf(text, ",\"settings\":{\"limit_request\":%lld,\"limit_connection\":%lld,\"action\":\"%s\"",
                (long long)settings.limit, (long long)settings_of_server(ap_server_conf).connection_limit,
                settings_action_name(settings.action));
    text_printf(text, ",\"limits_read_late\":%zu,\"limits_set\":%zu,\"limits\":[",
                (size_t)board_counted(COUNT_READ_LATE), n);
    for (size_t i = 0; i < n && i < LIMITS; i++) {
        const server_rec *server = limits[i].server;
        text_printf(text, "%s{\"directive\":\"%s\",\"bytes\":%lld,\"where\":", i ? "," : "",
                    limits[i].directive, (long long)limits[i].bytes);
        text_json(text, limits[i].where);
        text_json_field(text, "host", server->is_virtual ? server->server_hostname : NULL);
        text_json_field(text, "at", limits[i].at);
        text_puts(text, "}");
    }
    text_puts(text, "]}");
}

static void add_totals(struct text *text, const struct look *look)
{
    text_puts(text, ",\"totals\":{");
    add_sums(text, &look->pools);
    double seconds;
    uint64_t recent = board_recent_excesses(&seconds);
    text_printf(text, ",\"rss\":%lld", (long long)look->rss);
    add_number(text, "pss", look->is_pss_known ? look->pss : -1);
    add_number(text, "outside", look->outside);
    text_printf(
        text, ",\"over_limit\":%zu,\"over_limit_recent\":%zu,\"recent_seconds\":%.0f,\"over_hard\":%zu",
        (size_t)board_counted(COUNT_EXCESSES), (size_t)recent, seconds, (size_t)board_counted(COUNT_HARD));
    text_printf(text, ",\"children_ended\":%zu,\"children_killed\":%zu}", (size_t)board_counted(COUNT_ENDED),
                (size_t)board_counted(COUNT_KILLED));
}

static void add_tags(struct text *text, const struct pool_tags *tags)
{
    text_puts(text, ",\"tags\":[");
    for (size_t i = 0; i < tags->n; i++) {
        text_printf(text, "%s{\"tag\":%s,", i ? "," : "", tags->tags[i].name);
        add_sums(text, &tags->tags[i].sums);
        text_puts(text, "}");
    }
    text_puts(text, "]");
}

static void add_mallocs(struct text *text, const struct pool_tags *mallocs)
{
    text_puts(text, ",\"mallocs\":[");
    for (size_t i = 0; i < mallocs->n && i < MALLOCS; i++) {
        const char *module = mallocs->tags[i].name, *tab = strchr(module, '\t');
        text_printf(text, "%s{\"module\":%.*s,\"for\":%s,\"bytes\":%zu,\"objects\":%zu}", i ? "," : "",
                    (int)(tab - module), module, tab + 1, (size_t)mallocs->tags[i].sums.bytes,
                    (size_t)mallocs->tags[i].sums.objects);
    }
    text_puts(text, "]");
}

/* What is served now, by host. */
static void add_hosts(struct text *text, const struct pool_tags *hosts)
{
    text_puts(text, ",\"hosts\":[");
    for (size_t i = 0; i < hosts->n && i < HOSTS; i++) {
        const struct pool_tag *host = &hosts->tags[i];
        text_printf(text, "%s{\"host\":%s,\"requests\":%zu,\"bytes\":%zu}", i ? "," : "", host->name,
                    (size_t)host->sums.pools, (size_t)host->sums.bytes);
    }
    text_puts(text, "]");
}

/* --- growers ------------------------------------------------------------------------------------- */

static uint64_t earlier_bytes(const struct pool_tags *earlier, const char *name)
{
    for (size_t i = 0; i < earlier->n; i++)
        if (strcmp(earlier->tags[i].name, name) == 0) return earlier->tags[i].sums.bytes;
    return 0;
}

static void add_growers(struct text *text, const struct look *look, const struct growers *growers)
{
    struct pool_tags grown = {.tags = NULL}; /* bytes are the change, and live bytes what there is */
    for (size_t i = 0; i < look->tags.n; i++) {
        const struct pool_tag *tag = &look->tags.tags[i];
        uint64_t now = tag->sums.bytes, before = earlier_bytes(&growers->earlier, tag->name);
        struct pool_sums sums = {.bytes = now - before, .live_bytes = now};
        if (now > before) pool_tags_add(&grown, tag->name, &sums);
    }
    pool_tags_sort(&grown);
    text_puts(text, ",\"growers\":[");
    for (size_t i = 0; i < grown.n && i < GROWERS; i++)
        text_printf(text, "%s{\"tag\":%s,\"bytes\":%zu,\"change\":%zu,\"seconds\":%.0f}", i ? "," : "",
                    grown.tags[i].name, (size_t)grown.tags[i].sums.live_bytes,
                    (size_t)grown.tags[i].sums.bytes, growers->seconds);
    text_puts(text, "]");
    pool_tags_free(&grown);
}

/* --- requests ------------------------------------------------------------------------------------ */

/* On stock pools no child answers; the scoreboard has at least the requests. */
static void add_scoreboard_request(struct text *text, int process, int thread, unsigned *n)
{
    worker_score score;
    ap_copy_scoreboard_worker(&score, process, thread);
    if (score.status < SERVER_BUSY_READ || score.status > SERVER_BUSY_DNS || !*score.request) return;
    char *uri = strchr(score.request, ' ');
    if (uri) *uri++ = 0;
    char *protocol = uri ? strchr(uri, ' ') : NULL;
    if (protocol) *protocol = 0;
    text_printf(text, "%s{\"pid\":%ld,\"method\":", (*n)++ ? "," : "",
                (long)ap_scoreboard_image->parent[process].pid);
    text_json(text, score.request);
    text_json_field(text, "uri", uri ? uri : "");
    text_json_field(text, "host", score.vhost);
    text_json_field(text, "client", score.client64);
    text_json_field(text, "protocol", score.protocol);
    text_printf(text, ",\"age\":%.3f,\"bytes\":null,\"peak\":null}",
                (double)(apr_time_now() - score.start_time) / 1e6);
}

static void add_scoreboard_requests(struct text *text)
{
    unsigned n = 0;
    const global_score *global = ap_exists_scoreboard_image() ? ap_scoreboard_image->global : NULL;
    for (int i = 0; global && i < global->server_limit; i++)
        for (int j = 0; j < global->thread_limit && n < REQUESTS; j++)
            if (ap_scoreboard_image->parent[i].pid) add_scoreboard_request(text, i, j, &n);
}

static void add_requests(struct text *text, const struct look *look)
{
    text_puts(text, ",\"requests\":[");
    for (size_t i = 0; i < look->n_rows && i < REQUESTS; i++) {
        if (i) text_puts(text, ",");
        text_puts(text, look->rows[i].json);
    }
    if (library_lacks()) add_scoreboard_requests(text);
    text_puts(text, "]");
}

/* --- the curve ----------------------------------------------------------------------------------- */

static void add_history(struct text *text)
{
    struct board_point points[BOARD_POINTS];
    size_t n = board_history(points);
    text_puts(text, ",\"history\":[");
    for (size_t i = 0; i < n; i++)
        text_printf(text, "%s{\"t\":%lld,\"bytes\":%zu,\"rss\":%zu,\"requests\":%u}", i ? "," : "",
                    (long long)apr_time_sec(points[i].time), (size_t)points[i].bytes, (size_t)points[i].rss,
                    points[i].requests);
    text_puts(text, "]");
}

/* --- children that have ended -------------------------------------------------------------------- */

/* What is not known is null. */
static void add_end(struct text *text, const struct board_end *end, const char *comma)
{
    static const char *const whys[] = {"ReapChildLimit", "ReapLimitHard", "no memory", "killed"};
    const size_t most = sizeof end->ran / sizeof *end->ran;
    text_printf(text, "%s{\"pid\":%ld,\"t\":%lld,\"why\":\"%s\",\"uptime\":%lld,\"requests\":%u", comma,
                (long)end->pid, (long long)apr_time_sec(end->time), whys[end->why],
                (long long)apr_time_sec(end->uptime), end->requests);
    add_number(text, "signal", end->signal ? end->signal : -1);
    add_known(text, "rss", end->rss);
    add_known(text, "bytes", end->bytes);
    add_known(text, "limit", end->limit);
    add_who(text, "largest", &end->largest);
    text_json_field(text, "host", *end->largest.host ? end->largest.host : NULL);
    text_puts(text, ",\"ran\":[");
    for (size_t i = 0; i < most && end->ran[i].pid; i++) {
        text_printf(text, "%s{\"bytes\":%zu", i ? "," : "", (size_t)end->ran[i].bytes);
        add_who(text, "request", &end->ran[i]);
        text_puts(text, "}");
    }
    text_puts(text, "]}");
}

static void add_ended(struct text *text)
{
    struct board_end *ends = malloc(BOARD_ENDS * sizeof *ends);
    size_t n = ends ? board_ends(ends) : 0;
    text_puts(text, ",\"ended\":[");
    for (size_t i = 0; i < n; i++) add_end(text, &ends[i], i ? "," : "");
    text_puts(text, "]");
    free(ends);
}

static void add_largest(struct text *text)
{
    struct board_request largest[BOARD_LARGEST];
    size_t n = board_largest(largest);
    text_puts(text, ",\"largest\":[");
    for (size_t i = 0; i < n; i++) {
        text_printf(text, "%s{\"pid\":%ld,\"t\":%lld,\"peak\":%zu,\"method\":", i ? "," : "",
                    (long)largest[i].pid, (long long)apr_time_sec(largest[i].time), (size_t)largest[i].bytes);
        text_json(text, largest[i].method);
        text_json_field(text, "uri", largest[i].uri);
        text_json_field(text, "host", largest[i].host);
        text_json_field(text, "client", largest[i].client);
        text_json_field(text, "limit",
                        largest[i].is_denied   ? "denied"
                        : largest[i].is_closed ? "closed"
                                               : NULL);
        text_puts(text, "}");
    }
    text_puts(text, "]");
}

/* --- processes ----------------------------------------------------------------------------------- */

static void add_tree(struct text *text, const struct child *child)
{
    static const char prefix[] = "row\t";
    const char *line = child->reply.data + child->rows, *end = child->reply.data + child->rows_end;
    text_puts(text, ",\"tree\":[");
    while (child->rows_end && line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        line += sizeof prefix - 1;
        text_add(text, line, (size_t)(stop - line));
        if (stop < end) text_puts(text, ",");
        line = stop + 1;
    }
    text_printf(text, "],\"omitted\":{\"pools\":%zu,\"bytes\":%zu}}", (size_t)child->omitted_pools,
                (size_t)child->omitted_bytes);
}

static void add_process(struct text *text, const struct child *child)
{
    static const char *const states[] = {"answers", "silent", "stopping"};
    text_printf(text, "{\"pid\":%ld,\"generation\":%d,\"state\":\"%s\"", (long)child->pid, child->generation,
                states[child->state]);
    add_number(text, "rss", child->rss);
    add_number(text, "pss", child->pss);
    add_number(text, "outside", child->outside);
    text_printf(text,
                ",\"uptime\":%lld,\"backend\":", (long long)apr_time_sec(apr_time_now() - child->since));
    text_puts(text, child->backend ? child->backend : "null");
    text_puts(text, ",\"pools\":{");
    add_sums(text, &child->pools);
    text_puts(text, "}");
    add_tree(text, child);
}

static void add_processes(struct text *text, const struct look *look)
{
    text_puts(text, ",\"processes\":[");
    for (size_t i = 0; i < look->n; i++) {
        if (i) text_puts(text, ",");
        add_process(text, &look->children[i]);
    }
    text_puts(text, "]");
}

void write_json(struct text *text, const struct look *look, const struct growers *growers)
{
    text_puts(text, "{");
    add_server(text, look);
    text_printf(text, ",\"preload\":%s,\"missing\":", library_lacks() ? "false" : "true");
    text_json(text, library_lacks());
    add_settings(text);
    add_totals(text, look);
    add_tags(text, &look->tags);
    add_mallocs(text, &look->mallocs);
    add_growers(text, look, growers);
    add_requests(text, look);
    add_hosts(text, &look->hosts);
    add_history(text);
    add_largest(text);
    add_ended(text);
    add_processes(text, look);
    text_puts(text, "}\n");
}
