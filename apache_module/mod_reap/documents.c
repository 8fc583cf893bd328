/* SPDX-License-Identifier: Apache-2.0 */
#include "documents.h"

#include "documents_write.h"
#include "gather.h"

#include <unistd.h>

/* Looks may use a quarter of a percent of the machine: one that took long is good for longer. */
static const apr_interval_time_t least_life = APR_USEC_PER_SEC, most_life = 10 * APR_USEC_PER_SEC;

static apr_interval_time_t life_of(const struct look *look)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    apr_interval_time_t life = (apr_interval_time_t)look->cpu * 400 / (processors > 0 ? processors : 1);
    return life < least_life ? least_life : life > most_life ? most_life : life;
}

static void add_point(const struct look *look)
{
    board_add_point(&(struct board_point){
        .time = apr_time_now(),
        .bytes = look->pools.bytes,
        .rss = (uint64_t)look->rss,
        .requests = look->requests,
    });
}

static void write_all(const struct look *look)
{
    struct text texts[DOCUMENTS] = {{.data = NULL}};
    struct growers growers = {.seconds = 0};
    add_point(look);
    growers.seconds = board_growth(&look->tags, &growers.earlier);
    write_json(&texts[DOCUMENT_JSON], look, &growers);
    write_auto(&texts[DOCUMENT_AUTO], look);
    write_prometheus(&texts[DOCUMENT_PROMETHEUS], look);
    write_brief(&texts[DOCUMENT_BRIEF], look);
    board_keep_documents(texts, life_of(look));
    pool_tags_free(&growers.earlier);
    for (int i = 0; i < DOCUMENTS; i++) text_free(&texts[i]);
}

static void look_anew(void)
{
    struct look look;
    if (look_take(&look)) write_all(&look);
    look_free(&look);
}

char *documents_get(enum document document, size_t *length)
{
    char *data = board_document(document, false, length);
    if (data) return data;
    if (!board_begin_look(0)) { /* another child looks: its last result, or that of this look */
        data = board_document(document, true, length);
        if (data || !board_begin_look(2 * APR_USEC_PER_SEC)) return data;
    }
    data = board_document(document, false, length);
    if (!data) {
        look_anew();
        data = board_document(document, true, length);
    }
    board_end_look();
    return data;
}
