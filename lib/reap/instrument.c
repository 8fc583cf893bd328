/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.c: what those who look for mistakes are told of objects. */
#include "reap/instrument.h"

#include <stdlib.h>

#include "base/options.h"
#include "hoard/guarded_map.h"
#include "reap/misuse.h"
#include "reap/reap_shared.h"
#include "region/kept_chunks.h"

/* chunk_alloc reads the options, but not before the first reap wants its chunk. */
void reap_watch_start(void)
{
    chunk_start();
    apart_start();
    reap_kept_on = memtool_running();
    reap_watched = reap_kept_on || apart_on;
    if (apart_on && options.harden) atexit(apart_check_freed);
}

/* What malloc has given, its tool knows. */
static void *pool_of(struct reap *reap) { return apart_is_foreign() ? NULL : reap; }

/* NULL: the object is not apart. */
static void *header_of(const void *object) { return apart_on ? apart_map_find(object, NULL) : NULL; }

static void set_size(const void *object, size_t size)
{
    void *header = header_of(object);
    if (header) apart_set_size(header, size);
}

/* Its name is looked at where the reap's own thread comes by, at the latest before the object is freed. */
void reap_watch_alloc(struct reap *reap, void *object, size_t size, bool zeroed)
{
    ASSERT(reap_watched && object);
    memtool_alloc(pool_of(reap), object, size, zeroed);
    void *header = header_of(object);
    if (!header) return;
    apart_set_size(header, size);
    apart_note(header, reap_handle(reap), NULL);
}

void reap_watch_free(struct reap *reap, void *object, size_t bytes)
{
    ASSERT(reap_watched && object);
    memtool_free(pool_of(reap), object, bytes);
    void *header = header_of(object);
    if (header) apart_note(header, reap_handle(reap), reap_name_text(reap));
}

void reap_watch_widen(struct reap *reap, void *object, size_t bytes)
{
    memtool_widen(pool_of(reap), object, bytes);
    set_size(object, bytes);
}

void reap_watch_resize(struct reap *reap, void *object, size_t bytes, size_t size)
{
    memtool_resize(pool_of(reap), object, bytes, size);
    set_size(object, size);
}

void reap_watch_check(struct reap *reap, const char *call)
{
    for (struct reap_chunk *chunk = reap->chunks; chunk; chunk = chunk->next) {
        if (!reap_chunk_is_apart(chunk)) continue;
        if (!apart_is_intact(chunk)) reap_misuse_object(call, reap, reap_address(chunk, chunk->first));
        apart_note(chunk, reap_handle(reap), reap_name_text(reap));
    }
}
