/* SPDX-License-Identifier: Apache-2.0 */
/* answers.c: what the library answers by itself: trees, totals and the backend, as text and as JSON. */
#include "ask/answers.h"

#include "reap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "hoard/init.h"
#include "hoard/usage.h"
#include "os/pages.h"

static void write_stream(const char *text, size_t size, void *out) { fwrite(text, 1, size, out); }

/* --- text ------------------------------------------------------------------------------------ */

static void tree(FILE *out) { reapReport(NULL, out); }

static void usage(FILE *out) { usage_report(out); }

/* --- JSON ------------------------------------------------------------------------------------ */

void reapBackendJson(FILE *out)
{
    const struct json json = {write_stream, out};
    hoard_start();
    json_put(&json, "{");
    usage_json(&json);
    json_put(&json, "}");
}

/* The rows of reaps: all but the first begin with a comma. */
struct rows {
    struct json json;
    const char *comma;
};

static int put_row(const struct reap_view *view, void *arg)
{
    struct rows *rows = arg;
    const struct reap_stats *stats = &view->stats;
    char parent[32] = "null", age[32] = "null";
    if (view->parent) snprintf(parent, sizeof parent, "\"%p\"", view->parent);
    if (view->age >= 0) snprintf(age, sizeof age, "%.0f", view->age);
    json_put(&rows->json, "%s\n {\"depth\": %u, \"name\": ", rows->comma, view->depth);
    json_string(&rows->json, view->name, SIZE_MAX);
    json_put(&rows->json, ", \"reap\": \"%p\", \"parent\": %s, ", view->reap, parent);
    json_put(&rows->json, "\"bytes\": %zu, \"live_bytes\": %zu, \"objects\": %zu, \"chunks\": %zu, ",
             stats->chunk_bytes, stats->live_bytes, stats->live_objects, stats->chunks);
    json_put(&rows->json, "\"peak\": %zu, \"limit\": %zu, \"age\": %s}", stats->peak_chunk_bytes,
             stats->limit, age);
    rows->comma = ",";
    return 0;
}

static void json(FILE *out)
{
    struct rows rows = {.json = {write_stream, out}, .comma = ""};
    json_put(&rows.json, "{\"process\": %u, \"program\": ", (unsigned)getpid());
    json_string(&rows.json, program_invocation_short_name, 200);
    json_put(&rows.json, ", \"backend\": ");
    reapBackendJson(out);
    json_put(&rows.json, ",\n\"reaps\": [");
    reapSurvey(NULL, put_row, &rows);
    json_put(&rows.json, "]}\n");
}

/* --- totals by name -------------------------------------------------------------------------- */

enum { TAGS = 1024, TAG_NAME = 120 /* bytes that tell names apart */ };

struct tag {
    char name[TAG_NAME];
    size_t reaps, objects, bytes, chunks, held;
};

/* A hash table; the last tag has the sum of those that found no room. */
struct tags {
    struct tag tags[TAGS + 1];
    size_t count;
};

static size_t hash_of(const char *name)
{
    size_t hash = 5381;
    for (; *name; name++) hash = hash * 33 ^ (unsigned char)*name;
    return hash * 0x9e3779b97f4a7c15u >> 40;
}

static struct tag *find_tag(struct tags *tags, const char *given)
{
    char name[TAG_NAME] = "";
    const char *text = *given ? given : "(no name)";
    memcpy(name, text, strnlen(text, sizeof name - 1));
    for (size_t i = hash_of(name) % TAGS;; i = (i + 1) % TAGS) {
        struct tag *tag = &tags->tags[i];
        if (tag->reaps != 0 && strcmp(tag->name, name) == 0) return tag;
        if (tag->reaps != 0) continue;
        if (tags->count == TAGS * 3 / 4) return &tags->tags[TAGS];
        tags->count++;
        memcpy(tag->name, name, sizeof name);
        return tag;
    }
}

static int add_to_tag(const struct reap_view *view, void *arg)
{
    struct tag *tag = find_tag(arg, view->name);
    tag->reaps++;
    tag->objects += view->stats.live_objects;
    tag->bytes += view->stats.live_bytes;
    tag->chunks += view->stats.chunks;
    tag->held += view->stats.chunk_bytes;
    return 0;
}

static int compare_tags(const void *a, const void *b)
{
    const struct tag *one = a, *two = b;
    if (one->held != two->held) return one->held < two->held ? 1 : -1;
    return strcmp(one->name, two->name);
}

static void list_tags(FILE *out)
{
    size_t size = align_up(sizeof(struct tags), PAGE);
    struct tags *tags = pages_map(size, PAGE);
    if (!tags) {
        fprintf(out, "reap: no memory for this answer\n");
        return;
    }
    snprintf(tags->tags[TAGS].name, TAG_NAME, "(other names)");
    reapSurvey(NULL, add_to_tag, tags);
    qsort(tags->tags, TAGS + 1, sizeof(struct tag), compare_tags);
    for (const struct tag *tag = tags->tags; tag <= tags->tags + TAGS && tag->reaps != 0; tag++)
        fprintf(out, "%s: %zu reaps, %zu objects, %zu bytes, %zu chunks, %zu held\n", tag->name, tag->reaps,
                tag->objects, tag->bytes, tag->chunks, tag->held);
    pages_unmap(tags, size);
}

const struct answer answers[] = {{"tree", tree, "the tree of reaps, as reapReport writes it"},
                                 {"tags", list_tags, "the sums of reaps of the same name, largest first"},
                                 {"usage", usage, "the backend's memory, as with REAP_OPTIONS=stats=1"},
                                 {"json", json, "all of this as JSON"},
                                 {NULL, NULL, NULL}};
