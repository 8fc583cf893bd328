/* SPDX-License-Identifier: Apache-2.0 */
#include "os/metadata.h"

#include "os/pages.h"

enum { METADATA_STEP = 256 * 1024 }; /* bytes mapped at a time */

struct metadata {
    _Atomic size_t used; /* bytes, this header included; above METADATA_STEP: nothing is left */
    _Alignas(64) char bytes[];
};

static _Atomic(struct metadata *) metadata;

/* Maps a new piece; the rest of `before` is lost. Of two threads that do so, the later unmaps its own. */
static bool metadata_map(struct metadata *before)
{
    struct metadata *more = pages_map_table(METADATA_STEP);
    if (more == NULL) return false;
    atomic_store_explicit(&more->used, sizeof *more, memory_order_relaxed);
    if (!atomic_compare_exchange_strong(&metadata, &before, more)) pages_unmap(more, METADATA_STEP);
    return true;
}

void *metadata_alloc(size_t size)
{
    size = align_up(size, 64);
    ASSERT(size != 0);
    if (size > METADATA_STEP - sizeof(struct metadata)) return pages_map_table(align_up(size, PAGE));
    for (;;) {
        struct metadata *now = atomic_load_explicit(&metadata, memory_order_acquire);
        size_t at = now != NULL ? atomic_fetch_add(&now->used, size) : METADATA_STEP;
        if (at + size <= METADATA_STEP) return (char *)now + at;
        if (!metadata_map(now)) return NULL;
    }
}
