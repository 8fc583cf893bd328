/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include "board.h"
#include "library.h"
#include "live.h"
#include "pools.h"
#include "process.h"
#include "strike.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTHS = 64 }; /* an owner is known above this; deeper pools have that of the last */

struct survey {
    struct text text;
    struct pool_sums all, omitted;
    struct pool_tags tags;
    unsigned rows, most;
    const struct live_copy *live; /* by reap */
    size_t n_live;
    const char *owners[DEPTHS]; /* of the pools above the present one */
    struct pool_path path;
    bool is_own;        /* the present pool is the child's own, or below it, ... */
    unsigned own_depth; /* ... which is here */
};

static apr_pool_t *own_pool; /* the child's */

/* Ages tell what is older than the child only where its clock began with it: the option ask starts one in the
 * first process. So the reaps that were there are noted; one that is made in such a place is rare. */
static void *before[512];
static size_t n_before;

static int note_before(const struct reap_view *view, void *unused)
{
    (void)unused;
    if (n_before == sizeof before / sizeof *before) return 1;
    if (view->age >= 0) before[n_before++] = view->reap;
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t one = (uintptr_t) * (void *const *)a, other = (uintptr_t) * (void *const *)b;
    return (one > other) - (one < other);
}

void answer_begin(apr_pool_t *pool)
{
    own_pool = pool;
    n_before = 0;
    if (library_lacks()) return;
    reapSurvey(NULL, note_before, NULL);
    if (n_before) qsort(before, n_before, sizeof *before, by_address);
}

static bool is_inherited(struct survey *survey, const struct reap_view *view)
{
    if (survey->is_own && view->depth <= survey->own_depth) survey->is_own = false;
    if (view->reap == *apr_pool_reap(own_pool)) {
        survey->is_own = true;
        survey->own_depth = view->depth;
    }
    return !survey->is_own && (view->age < 0 || (n_before && bsearch(&view->reap, before, n_before,
                                                                     sizeof *before, by_address)));
}

static int by_reap(const void *a, const void *b)
{
    const struct live_copy *one = a, *other = b;
    return (one->reap > other->reap) - (one->reap < other->reap);
}

static const char *owner_of(struct survey *survey, const struct reap_view *view)
{
    unsigned depth = view->depth < DEPTHS ? view->depth : DEPTHS - 1;
    const char *owner = depth ? survey->owners[depth - 1] : NULL;
    const struct live_copy *live = survey->n_live
                                       ? bsearch(&(struct live_copy){.reap = view->reap}, survey->live,
                                                 survey->n_live, sizeof *survey->live, by_reap)
                                       : NULL;
    if (live && live->owner) owner = live->owner;
    return survey->owners[depth] = owner;
}

static void add_field(struct text *text, const char *name, uint64_t number)
{
    text_puts(text, name);
    text_number(text, number);
}

static void add_row(struct text *text, const struct reap_view *view, const char *tag, bool is_inherited,
                    const char *owner)
{
    add_field(text, "row\t{\"depth\":", view->depth);
    text_puts(text, ",\"tag\":");
    text_json(text, tag);
    text_printf(text, ",\"id\":\"%p\"", view->reap);
    add_field(text, ",\"bytes\":", view->stats.chunk_bytes);
    add_field(text, ",\"live_bytes\":", view->stats.live_bytes);
    add_field(text, ",\"objects\":", view->stats.live_objects);
    add_field(text, ",\"chunks\":", view->stats.chunks);
    add_field(text, ",\"peak\":", view->stats.peak_chunk_bytes);
    add_field(text, ",\"limit\":", view->stats.limit);
    if (view->age < 0 || is_inherited)
        text_puts(text, ",\"age\":null");
    else
        add_field(text, ",\"age\":", (uint64_t)view->age);
    text_puts(text, is_inherited ? ",\"inherited\":true" : ",\"inherited\":false");
    text_puts(text, ",\"owner\":");
    text_json(text, owner);
    text_puts(text, "}\n");
}

static int add_pool(const struct reap_view *view, void *arg)
{
    struct survey *survey = arg;
    const char *owner = owner_of(survey, view);
    const char *tag = pool_tag_of(&survey->path, view);
    struct pool_sums sums = pool_sums_of(view);
    bool is_from_before = is_inherited(survey, view);
    if (is_from_before) sums.inherited = sums.bytes;
    pools_add(&survey->all, &sums);
    pool_tags_add(&survey->tags, tag, &sums);
    if (survey->rows < survey->most) {
        survey->rows++;
        add_row(&survey->text, view, tag, is_from_before, owner);
    } else {
        pools_add(&survey->omitted, &sums);
    }
    return 0;
}

static void add_sums(struct text *text, const char *what, const struct pool_sums *sums)
{
    text_printf(text, "%s\t%zu\t%zu\t%zu\t%zu\t%zu\t%zu", what, (size_t)sums->pools, (size_t)sums->bytes,
                (size_t)sums->live_bytes, (size_t)sums->objects, (size_t)sums->chunks,
                (size_t)sums->inherited);
}

static void add_tags(struct text *text, const char *what, const struct pool_tags *tags)
{
    for (size_t i = 0; i < tags->n; i++) {
        add_sums(text, what, &tags->tags[i].sums);
        text_puts(text, "\t");
        text_json(text, tags->tags[i].name);
        text_puts(text, "\n");
    }
}

static void add_pools(struct text *text, struct survey *survey)
{
    add_sums(text, "pools", &survey->all);
    text_puts(text, "\n");
    add_tags(text, "tag", &survey->tags);
    if (survey->text.data) text_add(text, survey->text.data, survey->text.length);
    text->failed |= survey->text.failed;
    text_printf(text, "omitted\t%zu\t%zu\n", (size_t)survey->omitted.pools, (size_t)survey->omitted.bytes);
}

static void add_hosts(struct text *text, const struct live_copy *live, size_t n)
{
    struct pool_tags hosts = {.tags = NULL};
    for (size_t i = 0; i < n; i++)
        if (live[i].host)
            pool_tags_add(&hosts, live[i].host, &(struct pool_sums){.pools = 1, .bytes = live[i].bytes});
    add_tags(text, "host", &hosts);
    pool_tags_free(&hosts);
}

static int by_bytes(const void *a, const void *b)
{
    const struct live_copy *one = a, *other = b;
    return (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

static void add_requests(struct text *text, struct live_copy *live, size_t n)
{
    size_t shown = 0;
    if (n) qsort(live, n, sizeof *live, by_bytes);
    for (size_t i = 0; i < n && shown < ANSWER_REQUESTS; i++) {
        if (!live[i].json) continue;
        text_printf(text, "request\t%zu\t%s\n", live[i].bytes, live[i].json);
        shown++;
    }
}

/* The largest lines of the heap profile; its module and its name become strings of JSON. */
static void add_mallocs(struct text *text)
{
    char *data = NULL, *rest, *line;
    size_t size = 0, lines = 0;
    FILE *stream = library_profiles() ? open_memstream(&data, &size) : NULL;
    if (!stream) return;
    reap_profile_face_2.put_mallocs(stream);
    if (fclose(stream) != 0) data = NULL;
    for (rest = data; data && lines < ANSWER_MALLOCS && (line = strsep(&rest, "\n")) && *line; lines++) {
        char *module = strchr(line, '\t'), *name = strrchr(line, '\t');
        module = module ? strchr(module + 1, '\t') : NULL;
        if (!module || name == module) continue;
        *name = 0;
        text_printf(text, "malloc\t%.*s\t", (int)(module - line), line);
        text_json(text, module + 1);
        text_puts(text, "\t");
        text_json(text, name + 1);
        text_puts(text, "\n");
    }
    free(data);
}

/* As one line. */
static void add_backend(struct text *text)
{
    char *data = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&data, &size);
    if (!stream) return;
    reapBackendJson(stream);
    if (fclose(stream) == 0 && data) {
        for (char *end = data; (end = strpbrk(end, "\n\t"));) *end = ' ';
        text_printf(text, "backend\t%s\n", data);
    }
    free(data);
}

/* It is half of an answer's cost, so it is asked for every five seconds. */
static int64_t proportional(void)
{
    static int64_t last;
    static apr_time_t asked;
    apr_time_t now = apr_time_now();
    if (now - asked >= 5 * APR_USEC_PER_SEC) {
        last = process_proportional(getpid());
        asked = now;
    }
    return last;
}

static void add_process(struct text *text, long begin)
{
    const struct board_slot *own = board_own_slot();
    text_printf(text, "process\t%d\t%lld\t%lld\t%lld\t%u\t%ld\n", own ? own->generation : 0,
                own ? (long long)own->since : 0, (long long)process_resident(getpid()),
                (long long)proportional(), live_requests(), process_thread_cpu() - begin);
}

void answer(FILE *out, const char *args, void *arg)
{
    if (args && strcmp(args, ANSWER_TELL) == 0) {
        strike_tell(arg, NULL);
        return;
    }
    long begin = process_thread_cpu(), most = args ? atol(args) : 0;
    struct text text = {.data = NULL};
    struct survey survey = {.most = most > 0 && most < ANSWER_ROWS ? (unsigned)most : ANSWER_ROWS};
    struct live_copy *live = live_copy_all(&survey.n_live);
    if (survey.n_live) qsort(live, survey.n_live, sizeof *live, by_reap);
    survey.live = live;
    reapSurvey(NULL, add_pool, &survey);
    live_note_bytes(NULL);
    add_pools(&text, &survey);
    add_backend(&text);
    add_mallocs(&text);
    add_hosts(&text, live, survey.n_live);
    add_requests(&text, live, survey.n_live);
    add_process(&text, begin);
    text_puts(&text, "end\n");
    if (!text.failed) fwrite(text.data, 1, text.length, out);
    live_free_copies(live, survey.n_live);
    pool_tags_free(&survey.tags);
    text_free(&survey.text);
    text_free(&text);
}
