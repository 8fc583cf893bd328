/* reap_watch.c: what those who look for mistakes are told of objects. */
#include "reap_watch.h"

#include <stdlib.h>

#include "apart_map.h"
#include "options.h"
#include "reap_kept.h"
#include "reap_misuse.h"

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

static void set_size(const void *object, size_t size)
{
    void *header = apart_on ? apart_map_find(object, NULL) : NULL;
    if (header) apart_set_size(header, size);
}

void reap_watch_alloc(struct reap *reap, void *object, size_t size, bool zeroed)
{
    memtool_alloc(pool_of(reap), object, size, zeroed);
    set_size(object, size);
}

void reap_watch_free(struct reap *reap, void *object, size_t bytes)
{
    memtool_free(pool_of(reap), object, bytes);
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

void reap_watch_check(const struct reap *reap, const char *call)
{
    for (const struct reap_chunk *chunk = reap->chunks; chunk; chunk = chunk->next)
        if (reap_chunk_is_apart(chunk) && !apart_is_intact(chunk))
            reap_misuse_object(call, reap, reap_address(chunk, chunk->first));
}
