/* SPDX-License-Identifier: Apache-2.0 */
#include "documents_write.h"
#include "library.h"
#include "settings.h"

#include <scoreboard.h>
#include <string.h>

enum { MALLOCS = 50 }; /* each is a series */

static unsigned in_state(const struct look *look, enum child_state state)
{
    unsigned n = 0;
    for (size_t i = 0; i < look->n; i++) n += look->children[i].state == state;
    return n;
}

static long long uptime(void)
{
    if (!ap_exists_scoreboard_image()) return 0;
    return (long long)apr_time_sec(apr_time_now() - ap_scoreboard_image->global->restart_time);
}

/* --- text ---------------------------------------------------------------------------------------- */

static void add(struct text *text, const char *key, uint64_t value)
{
    text_printf(text, "%s: %llu\n", key, (unsigned long long)value);
}

void write_brief(struct text *text, const struct look *look)
{
    add(text, "ReapPools", look->pools.pools);
    add(text, "ReapPoolBytes", look->pools.bytes);
    add(text, "ReapLiveBytes", look->pools.live_bytes);
    add(text, "ReapProcesses", look->n);
    add(text, "ReapRSS", (uint64_t)look->rss);
    if (look->is_pss_known) add(text, "ReapPSS", (uint64_t)look->pss);
    if (look->outside >= 0) add(text, "ReapOutsideBytes", (uint64_t)look->outside);
    add(text, "ReapOverLimit", board_counted(COUNT_EXCESSES));
    add(text, "ReapOverHard", board_counted(COUNT_HARD));
    add(text, "ReapChildrenEnded", board_counted(COUNT_ENDED));
    add(text, "ReapChildrenKilled", board_counted(COUNT_KILLED));
}

void write_auto(struct text *text, const struct look *look)
{
    text_printf(text, "ServerVersion: %s\nServerMPM: %s\nReapPreload: %s\n", ap_get_server_banner(),
                ap_show_mpm(), library_lacks() ? "no" : "yes");
    if (library_lacks()) text_printf(text, "ReapMissing: %s\n", library_lacks());
    add(text, "ServerUptimeSeconds", (uint64_t)uptime());
    add(text, "ReapLookTime", (uint64_t)apr_time_sec(apr_time_now()));
    write_brief(text, look);
    add(text, "ReapObjects", look->pools.objects);
    add(text, "ReapChunks", look->pools.chunks);
    add(text, "ReapRequests", look->requests);
    add(text, "ReapProcessesSilent", in_state(look, CHILD_SILENT));
    add(text, "ReapProcessesStopping", in_state(look, CHILD_STOPPING));
    for (size_t i = 0; i < look->tags.n; i++) {
        const struct pool_tag *tag = &look->tags.tags[i];
        text_printf(text, "ReapTag %s: %llu bytes, %llu pools, %llu objects\n", tag->name,
                    (unsigned long long)tag->sums.bytes, (unsigned long long)tag->sums.pools,
                    (unsigned long long)tag->sums.objects);
    }
    for (size_t i = 0; i < look->mallocs.n && i < MALLOCS; i++) {
        const struct pool_tag *tag = &look->mallocs.tags[i];
        size_t module = strcspn(tag->name, "\t");
        text_printf(text, "ReapMalloc %.*s for %s: %llu bytes, %llu objects\n", (int)module, tag->name,
                    tag->name + module + 1, (unsigned long long)tag->sums.bytes,
                    (unsigned long long)tag->sums.objects);
    }
    for (size_t i = 0; i < look->n; i++) {
        const struct child *child = &look->children[i];
        text_printf(text, "ReapProcess %ld: %llu bytes, %llu pools, %lld rss\n", (long)child->pid,
                    (unsigned long long)child->pools.bytes, (unsigned long long)child->pools.pools,
                    (long long)child->rss);
    }
}

/* --- Prometheus ---------------------------------------------------------------------------------- */

static void head(struct text *text, const char *name, const char *type, const char *help)
{
    text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric(struct text *text, const char *name, const char *type, const char *help, uint64_t value)
{
    head(text, name, type, help);
    text_printf(text, "%s %llu\n", name, (unsigned long long)value);
}

/* A tag as a label's value: JSON's escapes are others than Prometheus', which knows three. */
static void add_label(struct text *text, const char *json, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (json[i] == '\\')
            text_puts(text, "\\\\");
        else
            text_add(text, json + i, 1);
    }
}

static void tag_metric(struct text *text, const struct look *look, const char *name, const char *help,
                       size_t offset)
{
    head(text, name, "gauge", help);
    for (size_t i = 0; i < look->tags.n; i++) {
        const struct pool_tag *tag = &look->tags.tags[i];
        text_printf(text, "%s{tag=", name);
        add_label(text, tag->name, strlen(tag->name));
        text_printf(text, "} %llu\n",
                    (unsigned long long)*(const uint64_t *)((const char *)&tag->sums + offset));
    }
}

static void malloc_metrics(struct text *text, const struct look *look)
{
    if (!look->mallocs.n) return;
    head(text, "reap_malloc_bytes", "gauge", "Bytes of malloc outside of pools, by module and for whom.");
    for (size_t i = 0; i < look->mallocs.n && i < MALLOCS; i++) {
        const struct pool_tag *tag = &look->mallocs.tags[i];
        size_t module = strcspn(tag->name, "\t");
        text_puts(text, "reap_malloc_bytes{module=");
        add_label(text, tag->name, module);
        text_puts(text, ",for=");
        add_label(text, tag->name + module + 1, strlen(tag->name + module + 1));
        text_printf(text, "} %llu\n", (unsigned long long)tag->sums.bytes);
    }
}

static void process_metrics(struct text *text, const struct look *look)
{
    head(text, "reap_process_pool_bytes", "gauge", "Bytes of the pools of a process.");
    for (size_t i = 0; i < look->n; i++)
        text_printf(text, "reap_process_pool_bytes{pid=\"%ld\"} %llu\n", (long)look->children[i].pid,
                    (unsigned long long)look->children[i].pools.bytes);
    head(text, "reap_process_resident_bytes", "gauge", "Resident memory of a process.");
    for (size_t i = 0; i < look->n; i++)
        if (look->children[i].rss >= 0)
            text_printf(text, "reap_process_resident_bytes{pid=\"%ld\"} %lld\n", (long)look->children[i].pid,
                        (long long)look->children[i].rss);
    head(text, "reap_process_outside_bytes", "gauge", "Resident memory of a process in no pool, at least.");
    for (size_t i = 0; i < look->n; i++)
        if (look->children[i].outside >= 0)
            text_printf(text, "reap_process_outside_bytes{pid=\"%ld\"} %lld\n", (long)look->children[i].pid,
                        (long long)look->children[i].outside);
    head(text, "reap_processes", "gauge", "Child processes by state.");
    text_printf(text, "reap_processes{state=\"answers\"} %u\n", in_state(look, CHILD_ANSWERS));
    text_printf(text, "reap_processes{state=\"silent\"} %u\n", in_state(look, CHILD_SILENT));
    text_printf(text, "reap_processes{state=\"stopping\"} %u\n", in_state(look, CHILD_STOPPING));
}

static void over_metrics(struct text *text)
{
    head(text, "reap_over_limit_total", "counter", "Requests beyond a limit since the start.");
    for (int action = ACTION_DENY; action <= ACTION_LOG; action++) {
        text_printf(text, "reap_over_limit_total{limit=\"ReapLimitRequest\",action=\"%s\"} %llu\n",
                    settings_action_name(action),
                    (unsigned long long)board_counted((enum board_counter)(COUNT_REQUEST + action)));
        text_printf(text, "reap_over_limit_total{limit=\"ReapLimitConnection\",action=\"%s\"} %llu\n",
                    settings_action_name(action),
                    (unsigned long long)board_counted((enum board_counter)(COUNT_CONNECTION + action)));
    }
}

static void add_raw_label(struct text *text, const char *name, const char *value)
{
    text_printf(text, ",%s=\"", name);
    for (size_t n; value && *value; value += n) {
        text_decode(value, &n);
        if (*value == '"' || *value == '\\') text_puts(text, "\\");
        text_add(text, n > 1 || (*value >= ' ' && *value <= '~') ? value : "?", n);
    }
    text_puts(text, "\"");
}

static void limit_metric(struct text *text, const struct limit_set *limit)
{
    text_printf(text, "reap_limit_bytes{limit=\"%s\"", limit->directive);
    add_raw_label(text, "where", limit->where);
    add_raw_label(text, "host", limit->server->is_virtual ? limit->server->server_hostname : "");
    add_raw_label(text, "at", limit->at);
    text_printf(text, "} %lld\n", (long long)limit->bytes);
}

/* A macro may set a limit twice at one place: the first one has the sample. */
static bool is_again(const struct limit_set *limits, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(limits[j].at, limits[i].at) == 0 && strcmp(limits[j].where, limits[i].where) == 0 &&
            limits[j].server == limits[i].server)
            return true;
    return false;
}

static void limit_metrics(struct text *text)
{
    size_t n;
    const struct limit_set *limits = settings_limits(&n);
    head(text, "reap_limit_bytes", "gauge", "Limits of the configuration, a hundred at most.");
    for (size_t i = 0; i < n && i < LIMITS; i++)
        if (!is_again(limits, i)) limit_metric(text, &limits[i]);
}

void write_prometheus(struct text *text, const struct look *look)
{
    metric(text, "reap_preload", "gauge", "1 where pools are on reaps.", !library_lacks());
    metric(text, "reap_uptime_seconds", "gauge", "Seconds since the server's start or restart.",
           (uint64_t)uptime());
    metric(text, "reap_pools", "gauge", "Pools of all processes.", look->pools.pools);
    metric(text, "reap_pool_bytes", "gauge", "Bytes of the pools of all processes.", look->pools.bytes);
    metric(text, "reap_pool_live_bytes", "gauge", "Bytes of live objects in pools.", look->pools.live_bytes);
    metric(text, "reap_pool_objects", "gauge", "Live objects in pools.", look->pools.objects);
    metric(text, "reap_pool_chunks", "gauge", "Chunks of pools.", look->pools.chunks);
    metric(text, "reap_resident_bytes", "gauge", "Resident memory of all processes, shared pages in each.",
           (uint64_t)look->rss);
    if (look->is_pss_known)
        metric(text, "reap_proportional_bytes", "gauge", "Resident memory, shared pages divided.",
               (uint64_t)look->pss);
    if (look->outside >= 0)
        metric(text, "reap_outside_bytes", "gauge", "Memory of all processes in no pool, at least.",
               (uint64_t)look->outside);
    metric(text, "reap_requests", "gauge", "Requests that are served now.", look->requests);
    over_metrics(text);
    limit_metrics(text);
    metric(text, "reap_over_hard_total", "counter", "Processes that ReapLimitHard ended since the start.",
           board_counted(COUNT_HARD));
    head(text, "reap_children_ended_total", "counter",
         "Processes that ended before their time, since the start.");
    text_printf(text, "reap_children_ended_total{why=\"ReapChildLimit\"} %llu\n",
                (unsigned long long)board_counted(COUNT_ENDED));
    text_printf(text, "reap_children_ended_total{why=\"killed\"} %llu\n",
                (unsigned long long)board_counted(COUNT_KILLED));
    tag_metric(text, look, "reap_tag_bytes", "Bytes of pools by tag.", offsetof(struct pool_sums, bytes));
    tag_metric(text, look, "reap_tag_pools", "Pools by tag.", offsetof(struct pool_sums, pools));
    tag_metric(text, look, "reap_tag_objects", "Live objects by tag.", offsetof(struct pool_sums, objects));
    malloc_metrics(text, look);
    process_metrics(text, look);
}
