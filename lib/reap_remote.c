/* reap_remote.c: free() and realloc() of a reap's object, from any thread. */
#include "reap_remote.h"

#include <string.h>

#include "chunk_client.h"
#include "reap_chunk.h"
#include "reap_misuse.h"
#include "report.h"

static void push(struct reap *reap, void *object, const char *call)
{
    void **words = object;
    if (words[1] == reap_pending(object)) report_misuse(call, object, "freed twice");
    words[1] = reap_pending(object);
    void *head = atomic_load_explicit(&reap->remote, memory_order_relaxed);
    do words[0] = head;
    while (!atomic_compare_exchange_weak_explicit(&reap->remote, &head, object, memory_order_release,
                                                  memory_order_relaxed));
}

static void push_chunk(struct reap *reap, struct reap_chunk *chunk)
{
    struct reap_chunk *head = atomic_load_explicit(&reap->remote_chunks, memory_order_relaxed);
    do chunk->next = head;
    while (!atomic_compare_exchange_weak_explicit(&reap->remote_chunks, &head, chunk, memory_order_release,
                                                  memory_order_relaxed));
}

static size_t usable(const struct reap_chunk *chunk, const void *object)
{
    size_t unit = reap_unit(chunk, object);
    return (reap_block_end(chunk->owner, chunk, unit) - unit) * REAP_UNIT;
}

static void free_object(void *object, const char *call)
{
    push(reap_chunk_of_any(object, call)->owner, object, call);
}

static void *realloc_object(void *object, size_t size, const char *call)
{
    struct reap_chunk *chunk = reap_chunk_of_any(object, call);
    struct reap *reap = chunk->owner;
    size_t have = usable(chunk, object);
    if (size <= have) return object;
    struct reap_chunk *whole = reap_chunk_whole(reap, REAP_UNIT, reap_units(size), NULL);
    if (!whole) return NULL;
    void *copy = reap_address(whole, whole->first);
    if (UNLIKELY(reap_watched)) memtool_alloc(reap, copy, reap_units(size) * REAP_UNIT, false);
    memcpy(copy, object, have);
    push_chunk(reap, whole);
    push(reap, object, call);
    return copy;
}

static size_t usable_size(const void *object, const char *call)
{
    return usable(reap_chunk_of_any(object, call), object);
}

void reap_remote_start(void)
{
    static const struct chunk_client client = {free_object, realloc_object, usable_size};
    chunk_set_client(&client);
}
