/* SPDX-License-Identifier: Apache-2.0 */
/* reap_layout.h: writes the header and the bitmaps of a new chunk.
 *
 * The functions are inline: most first chunks have one size, and with it much here becomes constant.
 */
#ifndef REAP_LAYOUT_H
#define REAP_LAYOUT_H

#include <string.h>

#include "base/sanitizer.h"
#include "region/reap_types.h"

/* Bytes of one bitmap of a chunk. */
static inline size_t reap_bitmap_size(size_t chunk_size) { return chunk_size / REAP_UNIT / 8; }

/* The bytes of a bitmap and its guard, a word of zeros: a window of bits may reach past the bitmap's end. */
static inline size_t reap_guarded_size(size_t chunk_size)
{
    return reap_bitmap_size(chunk_size) + sizeof(uint64_t);
}

/* Lays out a regular chunk, with bitmaps from offset `starts` on and objects behind them. Clears is_users and
 * shared. */
static ALWAYS_INLINE void reap_lay_out(struct reap_chunk *chunk, struct reap *owner, size_t size,
                                       size_t starts)
{
    ASSERT(size % 1024 == 0 && starts >= REAP_HEADER && starts % sizeof(uint64_t) == 0);
    chunk->owner = owner;
    chunk->tag = reap_chunk_tag(chunk);
    memset((char *)chunk + offsetof(struct reap_chunk, kind), 0, 8); /* one store, to the line's end */
    chunk->kind = REAP_REGULAR;
    chunk->size = size;
    chunk->first = reap_units(starts + reap_guarded_size(size) + reap_bitmap_size(size));
    chunk->end_unit = size / REAP_UNIT;
    chunk->live_above = 0;
    chunk->sweep_below = (ptrdiff_t)(chunk->end_unit - chunk->first);
    ASSERT(chunk->first < chunk->end_unit);
    chunk->high_water = 0;
    chunk->floor_high = 0;
    chunk->to_sweep = (struct list_node){NULL, NULL};
    chunk->draining = false;
    chunk->pinned = 0;
    atomic_init(&chunk->shrink_seq, 0);
    chunk->starts = (uint64_t *)((char *)chunk + starts);
    chunk->frees = NULL;
    chunk->fast_free_end = 0;
    if (UNLIKELY(reap_instrumented))
        sanitizer_hide(reap_address(chunk, chunk->first), (chunk->end_unit - chunk->first) * REAP_UNIT);
}

/* Writes a cache line of zeros. A call of memset, or what compilers make of 192 bytes (rep stos), costs as
 * much as the rest of creating a reap. */
typedef uint64_t line __attribute__((vector_size(64), aligned(8), may_alias));

static inline void reap_zero_line(void *at) { *(line *)at = (line){0}; }

/* Zeroes the starts and their guard; one or two lines of them are not worth a call. */
static inline void reap_zero_starts(struct reap_chunk *chunk, size_t size)
{
    if (size == 8 * 1024) {
        reap_zero_line(chunk->starts);
        chunk->starts[8] = 0;
    } else if (size == 16 * 1024) {
        reap_zero_line(chunk->starts);
        reap_zero_line(chunk->starts + 8);
        chunk->starts[16] = 0;
    } else {
        memset(chunk->starts, 0, reap_guarded_size(size));
    }
}

#endif
