/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.c: reports each object to the sanitizer, and to its guarded header. */
#include "reap/instrument.h"

#include <stdlib.h>

#include "base/options.h"
#include "hoard/guarded_map.h"
#include "reap/misuse.h"
#include "reap/reap_shared.h"

/* Of libreap-trace, which sees calls, and not what reap.h does inline. */
extern const char reap_trace_is_here[] __attribute__((weak, visibility("default")));

/* The first chunk_alloc would come too late: the options must be known before. */
void reap_instrument_start(void)
{
    chunk_start();
    guarded_start();
    reap_keeps_dead = sanitizer_running();
    reap_instrumented = reap_keeps_dead || guarded_on || reap_trace_is_here;
    if (guarded_on && options.harden) atexit(guarded_check_freed);
}

/* The sanitizer's pool of a reap; NULL for objects from a foreign malloc, which the sanitizer knows by
 * itself. */
static void *pool_of(struct reap *reap) { return guarded_is_foreign() ? NULL : reap; }

/* The header of a guarded object; NULL for any other object. */
static void *header_of(const void *object) { return guarded_on ? guarded_map_find(object, NULL) : NULL; }

static void set_size(const void *object, size_t size)
{
    void *header = header_of(object);
    if (header) guarded_set_size(header, size);
}

/* Notes no name of the reap, which only the reap's own thread may read. That thread notes the name later, at
 * the latest when it frees the object. */
void reap_instrument_alloc(struct reap *reap, void *object, size_t size, bool zeroed)
{
    ASSERT(reap_instrumented && object);
    sanitizer_alloc(pool_of(reap), object, size, zeroed);
    void *header = header_of(object);
    if (!header) return;
    guarded_set_size(header, size);
    guarded_note(header, reap_handle(reap), NULL);
}

void reap_instrument_free(struct reap *reap, void *object, size_t bytes)
{
    ASSERT(reap_instrumented && object);
    sanitizer_free(pool_of(reap), object, bytes);
    void *header = header_of(object);
    if (header) guarded_note(header, reap_handle(reap), reap_name_text(reap));
}

void reap_instrument_widen(struct reap *reap, void *object, size_t bytes)
{
    sanitizer_widen(pool_of(reap), object, bytes);
    set_size(object, bytes);
}

void reap_instrument_resize(struct reap *reap, void *object, size_t bytes, size_t size)
{
    sanitizer_resize(pool_of(reap), object, bytes, size);
    set_size(object, size);
}

void reap_instrument_check(struct reap *reap, const char *call)
{
    for (struct reap_chunk *chunk = reap->chunks; chunk; chunk = chunk->next) {
        if (!reap_chunk_is_apart(chunk)) continue;
        if (!guarded_is_intact(chunk)) reap_misuse_object(call, reap, reap_address(chunk->first));
        guarded_note(chunk, reap_handle(reap), reap_name_text(reap));
    }
}
