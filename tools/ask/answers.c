/* SPDX-License-Identifier: Apache-2.0 */
/* answers.c: what the library answers by itself: trees, totals and the backend, as text and as JSON. */
#include "answers.h"

#include "hoard.h"
#include "json.h"
#include "process.h"
#include "reap.h"
#include "reap_ask.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- text ------------------------------------------------------------------------------------ */

static void tree(FILE *out) { reapReport(NULL, out); }

/* --- JSON ------------------------------------------------------------------------------------ */

enum { LEVELS = 64 }; /* of a path */

/* The rows of a list: all but the first begin with a comma. */
struct rows {
    FILE *out;
    const char *comma;
    void *above[LEVELS]; /* the reaps above the row's, uppermost first */
};

static int put_class(const struct hoard_class *class, void *arg)
{
    struct rows *rows = arg;
    fprintf(rows->out, "%s{\"size\": %zu, \"chunks\": %s, \"superblocks\": %zu, \"empty\": %zu, ",
            rows->comma, class->size, class->has_chunks ? "true" : "false", class->superblocks, class->empty);
    fprintf(rows->out, "\"blocks\": %zu, \"used\": %zu}", class->blocks, class->used);
    rows->comma = ", ";
    return 0;
}

void reapBackendJson(FILE *out)
{
    NOT_NULL(out, "reapBackendJson");
    struct hoard_stats s;
    struct rows rows = {.out = out, .comma = ""};
    hoard_stats(&s);
    fprintf(out, "{\"path\": ");
    json_string(out, s.path, SIZE_MAX);
    fprintf(out, ", \"reason\": ");
    json_string(out, hoard_path_reason(), SIZE_MAX);
    fprintf(out, ", \"live_bytes\": %zu, \"large_bytes\": %zu, \"held_bytes\": %zu, ", s.live_bytes,
            s.large_bytes, s.held_bytes);
    fprintf(out, "\"peak_held_bytes\": %zu, \"heaps\": %zu, \"superblocks\": %zu, ", s.peak_held_bytes,
            s.heaps, s.superblocks);
    fprintf(out, "\"global_superblocks\": %zu, \"slow_mallocs\": %ju, \"slow_frees\": %ju, ",
            s.global_superblocks, (uintmax_t)s.slow_mallocs, (uintmax_t)s.slow_frees);
    fprintf(out, "\"remote_frees\": %ju, \"transfers\": %ju, \"classes\": [", (uintmax_t)s.remote_frees,
            (uintmax_t)s.transfers);
    hoard_walk_classes(put_class, &rows);
    size_t returned = hoard_returned_bytes();
    fprintf(out, "], \"os_given_bytes\": %zu, \"os_returned_bytes\": %zu}", s.held_bytes + returned,
            returned);
}

/* The reaps from the uppermost one to this one, so that a subtree is one filter. A reap that was destroyed
 * during the survey may be left out of it, so the parent comes from the view. */
static void put_path(struct rows *rows, const struct reap_view *view)
{
    unsigned depth = view->depth < LEVELS ? view->depth : LEVELS;
    if (depth > 0 && depth == view->depth) rows->above[depth - 1] = view->parent;
    fprintf(rows->out, "\"level\": %u, \"path\": [", view->depth + 1);
    for (unsigned i = 0; i < depth; i++) fprintf(rows->out, "\"%p\", ", rows->above[i]);
    fprintf(rows->out, "\"%p\"], ", view->reap);
}

static int put_reap(const struct reap_view *view, void *arg)
{
    struct rows *rows = arg;
    FILE *out = rows->out;
    const struct reap_stats *stats = &view->stats;
    char parent[32] = "null", age[32] = "null";
    if (view->parent) snprintf(parent, sizeof parent, "\"%p\"", view->parent);
    if (view->age >= 0) snprintf(age, sizeof age, "%.0f", view->age);
    fprintf(out, "%s\n {\"depth\": %u, \"name\": ", rows->comma, view->depth);
    json_string(out, view->name, SIZE_MAX);
    fprintf(out, ", \"reap\": \"%p\", \"parent\": %s, ", view->reap, parent);
    put_path(rows, view);
    fprintf(out, "\"bytes\": %zu, \"live_bytes\": %zu, \"objects\": %zu, \"chunks\": %zu, ",
            stats->chunk_bytes, stats->live_bytes, stats->live_objects, stats->chunks);
    fprintf(out, "\"peak\": %zu, \"limit\": %zu, \"age\": %s}", stats->peak_chunk_bytes, stats->limit, age);
    rows->comma = ",";
    return 0;
}

static void json(FILE *out)
{
    struct rows rows = {.out = out, .comma = ""};
    fprintf(out, "{\"process\": %d, \"program\": ", (int)getpid());
    json_string(out, program_invocation_short_name, 200);
    fprintf(out, ", \"backend\": ");
    reapBackendJson(out);
    fprintf(out, ",\n\"reaps\": [");
    reapSurvey(NULL, put_reap, &rows);
    fprintf(out, "]}\n");
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
    struct tags *tags = mmap(NULL, sizeof *tags, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (tags == MAP_FAILED) {
        fprintf(out, "reap: no memory for this answer\n");
        return;
    }
    snprintf(tags->tags[TAGS].name, TAG_NAME, "(other names)");
    reapSurvey(NULL, add_to_tag, tags);
    qsort(tags->tags, TAGS + 1, sizeof(struct tag), compare_tags);
    for (const struct tag *tag = tags->tags; tag <= tags->tags + TAGS && tag->reaps != 0; tag++)
        fprintf(out, "%s: %zu reaps, %zu objects, %zu bytes, %zu chunks, %zu held\n", tag->name, tag->reaps,
                tag->objects, tag->bytes, tag->chunks, tag->held);
    munmap(tags, sizeof *tags);
}

const struct answer answers[] = {
    {"tree", tree, "the tree of reaps, as reapReport writes it"},
    {"tags", list_tags, "the sums of reaps of the same name, largest first"},
    {"usage", hoard_report, "the backend's memory, as with REAP_OPTIONS=stats=1"},
    {"json", json, "all of this as JSON"},
    {NULL, NULL, NULL}};
