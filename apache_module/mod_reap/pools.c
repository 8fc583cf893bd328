/* SPDX-License-Identifier: Apache-2.0 */
#include "pools.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

void pools_add(struct pool_sums *to, const struct pool_sums *sums)
{
    to->pools += sums->pools;
    to->bytes += sums->bytes;
    to->live_bytes += sums->live_bytes;
    to->objects += sums->objects;
    to->chunks += sums->chunks;
    to->inherited += sums->inherited;
}

struct pool_sums pool_sums_of(const struct reap_view *view)
{
    const struct reap_stats *stats = &view->stats;
    return (struct pool_sums){1, stats->chunk_bytes, stats->live_bytes, stats->live_objects, stats->chunks,
                              0};
}

const char *pool_tag_of(struct pool_path *path, const struct reap_view *view)
{
    unsigned depth = view->depth < POOL_DEPTHS ? view->depth : POOL_DEPTHS - 1;
    const char *above = depth ? path->tags[depth - 1] : "";
    apr_cpystrn(path->tags[depth], *view->name ? view->name : above, POOL_TAG);
    if (*view->name) return view->name;
    apr_snprintf(path->text, sizeof path->text, *above ? "(below %s)" : "(root without tag)", above);
    return path->text;
}

static struct pool_tag *new_tag(struct pool_tags *tags, const char *name)
{
    if (tags->n == tags->room) {
        size_t room = tags->room ? 2 * tags->room : 64;
        struct pool_tag *more = realloc(tags->tags, room * sizeof *more);
        if (!more) return NULL;
        tags->tags = more;
        tags->room = room;
    }
    struct pool_tag *tag = &tags->tags[tags->n];
    *tag = (struct pool_tag){.name = strdup(name)};
    if (!tag->name) return NULL;
    tags->n++;
    return tag;
}

void pool_tags_add(struct pool_tags *tags, const char *name, const struct pool_sums *sums)
{
    struct pool_tag *tag = tags->tags, *end = tags->tags + tags->n;
    while (tag != end && strcmp(tag->name, name) != 0) tag++;
    if (tag == end) tag = new_tag(tags, name);
    if (tag) pools_add(&tag->sums, sums);
}

static int by_bytes(const void *a, const void *b)
{
    const struct pool_tag *one = a, *other = b;
    if (one->sums.bytes != other->sums.bytes) return one->sums.bytes < other->sums.bytes ? 1 : -1;
    return strcmp(one->name, other->name);
}

void pool_tags_sort(struct pool_tags *tags)
{
    if (tags->n) qsort(tags->tags, tags->n, sizeof *tags->tags, by_bytes);
}

void pool_tags_free(struct pool_tags *tags)
{
    for (size_t i = 0; i < tags->n; i++) free(tags->tags[i].name);
    free(tags->tags);
    *tags = (struct pool_tags){.tags = NULL};
}

struct tags_text {
    struct pool_tags tags;
    struct pool_path path;
};

static int add_to_tags(const struct reap_view *view, void *arg)
{
    struct tags_text *all = arg;
    struct pool_sums sums = pool_sums_of(view);
    pool_tags_add(&all->tags, pool_tag_of(&all->path, view), &sums);
    return 0;
}

struct text pools_largest_tags(void **reap, size_t n)
{
    struct tags_text all = {.tags = {.tags = NULL}};
    struct text text = {.data = NULL};
    reapSurvey(reap, add_to_tags, &all);
    pool_tags_sort(&all.tags);
    for (size_t i = 0; i < all.tags.n && i < n; i++) {
        const struct pool_tag *tag = &all.tags.tags[i];
        text_printf(&text, "%s%s %zu", i ? ", " : "", tag->name, (size_t)tag->sums.bytes);
        if (tag->sums.pools > 1) text_printf(&text, " (%zu pools)", (size_t)tag->sums.pools);
    }
    pool_tags_free(&all.tags);
    return text;
}

struct tops {
    struct pool_top *top;
    size_t n, most;
    struct pool_path path;
};

static int add_top(const struct reap_view *view, void *arg)
{
    struct tops *tops = arg;
    struct pool_top pool = {view->reap, view->stats.chunk_bytes, view->stats.live_objects, ""};
    apr_cpystrn(pool.tag, pool_tag_of(&tops->path, view), sizeof pool.tag);
    size_t at = tops->n;
    while (at && tops->top[at - 1].bytes < pool.bytes) at--;
    if (at == tops->most) return 0;
    if (tops->n < tops->most) tops->n++;
    memmove(&tops->top[at + 1], &tops->top[at], (tops->n - 1 - at) * sizeof *tops->top);
    tops->top[at] = pool;
    return 0;
}

size_t pools_top(struct pool_top *top, size_t n)
{
    struct tops tops = {.top = top, .most = n};
    reapSurvey(NULL, add_top, &tops);
    return tops.n;
}

struct tree_text {
    struct text text;
    struct pool_path path;
    unsigned left;
};

static int add_line(const struct reap_view *view, void *arg)
{
    struct tree_text *tree = arg;
    if (!tree->left--) {
        text_puts(&tree->text, "...\n");
        return 1;
    }
    text_printf(&tree->text, "%*s%s %zu bytes, %zu live in %zu objects, %zu chunks\n",
                (int)(view->depth < 40 ? 2 * view->depth : 80), "", pool_tag_of(&tree->path, view),
                view->stats.chunk_bytes, view->stats.live_bytes, view->stats.live_objects,
                view->stats.chunks);
    return 0;
}

struct text pools_tree_text(void **reap, unsigned n)
{
    struct tree_text tree = {.left = n};
    reapSurvey(reap, add_line, &tree);
    return tree.text;
}
