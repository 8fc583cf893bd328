/* SPDX-License-Identifier: Apache-2.0 */
/* kept_chunks.c: a quarantine for chunks that reaps have given back, under Valgrind and AddressSanitizer. */
#include "region/kept_chunks.h"

#include "base/sanitizer.h"

enum {
    KEPT = 64,                    /* chunks */
    KEPT_SIZE = 4 * 1024 * 1024,  /* bytes of a kept chunk, at most */
    KEPT_BYTES = 32 * 1024 * 1024 /* bytes of all kept chunks, at most */
};

bool kept_chunks_on;

static SPARSE _Atomic(struct reap_chunk *) kept[KEPT];
static _Atomic unsigned turn;
static _Atomic size_t bytes;

static void give(struct reap_chunk *chunk)
{
    sanitizer_show(chunk, chunk->size);
    chunk_free(chunk);
}

/* Hides all of a chunk but its header (with the reap itself in a first chunk) and a face. */
static void hide(struct reap_chunk *chunk)
{
    uintptr_t first = chunk->first * REAP_UNIT, end = (uintptr_t)chunk + chunk->size;
    if (chunk->shared) end -= REAP_FACE;
    if (first < end) sanitizer_hide((void *)first, end - first);
}

void kept_chunks_add(struct reap_chunk *chunk)
{
    ASSERT(!reap_chunk_is_live(chunk) && !chunk->is_users);
    if (chunk->size > KEPT_SIZE) {
        give(chunk);
        return;
    }
    hide(chunk);
    bytes += chunk->size;
    do {
        struct reap_chunk *old = atomic_exchange(&kept[turn++ % KEPT], chunk);
        chunk = NULL;
        if (!old) continue;
        bytes -= old->size;
        give(old);
    } while (bytes > KEPT_BYTES);
}
