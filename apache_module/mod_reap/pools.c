/* SPDX-License-Identifier: Apache-2.0 */
#include "pools.h"

#include <stdlib.h>
#include <string.h>

void pools_add(struct pool_sums *to, const struct pool_sums *sums)
{
    to->pools += sums->pools;
    to->bytes += sums->bytes;
    to->live_bytes += sums->live_bytes;
    to->objects += sums->objects;
    to->chunks += sums->chunks;
}

struct pool_sums pool_sums_of(const struct reap_view *view)
{
    const struct reap_stats *stats = &view->stats;
    return (struct pool_sums){1, stats->chunk_bytes, stats->live_bytes, stats->live_objects, stats->chunks};
}

const char *pool_tag_of(const struct reap_view *view) { return *view->name ? view->name : "(no tag)"; }

/* --- tags ---------------------------------------------------------------------------------------- */

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

/* --- texts --------------------------------------------------------------------------------------- */

static int add_to_tags(const struct reap_view *view, void *tags)
{
    struct pool_sums sums = pool_sums_of(view);
    pool_tags_add(tags, pool_tag_of(view), &sums);
    return 0;
}

struct text pools_largest_tags(void **reap, size_t n)
{
    struct pool_tags tags = {.tags = NULL};
    struct text text = {.data = NULL};
    reapSurvey(reap, add_to_tags, &tags);
    pool_tags_sort(&tags);
    for (size_t i = 0; i < tags.n && i < n; i++) {
        const struct pool_tag *tag = &tags.tags[i];
        text_printf(&text, "%s%s %zu", i ? ", " : "", tag->name, (size_t)tag->sums.bytes);
        if (tag->sums.pools > 1) text_printf(&text, " (%zu pools)", (size_t)tag->sums.pools);
    }
    pool_tags_free(&tags);
    return text;
}

struct tree_text {
    struct text text;
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
                (int)(view->depth < 40 ? 2 * view->depth : 80), "", pool_tag_of(view),
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
