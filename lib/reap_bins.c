/* reap_bins.c: a reap's free blocks by size: what is rare. */
#include "reap_bins.h"

NOINLINE void *reap_bin_emptied(struct reap *reap, struct reap_block *block, size_t bin)
{
    reap->bins_used &= ~((uint64_t)1 << bin);
    if (!reap->bins_used) reap_region_mode(reap);
    return block;
}

void reap_bins_add_dirty(struct reap *reap, struct reap_chunk *chunk)
{
    chunk->dirty = true;
    chunk->dirty_prev = NULL;
    chunk->dirty_next = reap->dirty;
    if (reap->dirty) reap->dirty->dirty_prev = chunk;
    reap->dirty = chunk;
}

void reap_bins_remove_dirty(struct reap *reap, struct reap_chunk *chunk)
{
    if (!chunk->dirty) return;
    chunk->dirty = false;
    if (chunk->dirty_next) chunk->dirty_next->dirty_prev = chunk->dirty_prev;
    if (chunk->dirty_prev)
        chunk->dirty_prev->dirty_next = chunk->dirty_next;
    else
        reap->dirty = chunk->dirty_next;
}
