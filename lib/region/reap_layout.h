/* SPDX-License-Identifier: Apache-2.0 */
/* reap_layout.h: writes the header and the start bits of a new chunk.
 *
 * The functions are inline: most first chunks have one size, and with it much here becomes constant.
 */
#ifndef REAP_LAYOUT_H
#define REAP_LAYOUT_H

#include <string.h>

#include "base/sanitizer.h"
#include "region/reap_chunk.h"

/* Writes a cache line of zeros. A call of memset, or what compilers make of 192 bytes (rep stos), costs as
 * much as the rest of creating a reap. */
typedef uint64_t line __attribute__((vector_size(64), aligned(8), may_alias));

static inline void reap_zero_line(void *at) { *(line *)at = (line){0}; }

/* Zeroes the start bits of a chunk; one or two lines of them are not worth a call. */
static ALWAYS_INLINE void reap_zero_starts(uint64_t *starts, size_t size)
{
    if (size == 1024) {
        *starts = 0;
    } else if (size == 8 * 1024) {
        reap_zero_line(starts);
    } else if (size == 16 * 1024) {
        reap_zero_line(starts);
        reap_zero_line(starts + 8);
    } else {
        memset(starts, 0, size / REAP_UNIT / 8);
    }
}

/* Lays out a regular chunk, with objects from offset `head` on. If there is no place for its bits in the map,
 * they lie in the chunk, and then come the objects. `again`: it was laid out with this size before, and
 * nobody had its memory since. Clears shared. */
static ALWAYS_INLINE void reap_lay_out(struct reap_chunk *chunk, struct reap *owner, size_t size, size_t head,
                                       bool is_users, bool again)
{
    ASSERT(size % 1024 == 0 && head >= REAP_HEADER && (uintptr_t)chunk % 1024 == 0);
    bool is_mapped = again && LIKELY(chunk->is_mapped);
    uint64_t *words = chunk->starts + (uintptr_t)chunk / 1024;
    if (!is_mapped) {
        bool is_near = (char *)owner == (char *)chunk + REAP_HEADER || chunk_map_is_near(chunk, owner);
        is_mapped = LIKELY(size <= SUPERBLOCK && !is_users && is_near) && chunk_map_claim(chunk);
        words = (uint64_t *)(void *)chunk_map_starts(chunk);
    }
    if (UNLIKELY(!is_mapped)) {
        owner->has_unmapped = true;
        words = (uint64_t *)((char *)chunk + head);
        head += 2 * (size / REAP_UNIT / 8);
    }
    chunk->owner = owner;
    chunk->tag = reap_chunk_tag(chunk);
    memset((char *)chunk + offsetof(struct reap_chunk, kind), 0, 8); /* one store, to the line's end */
    static_assert(REAP_CHUNK_REGION == 0, "the state is among them");
    chunk->kind = REAP_REGULAR;
    chunk->is_users = is_users;
    chunk->is_mapped = is_mapped;
    chunk->size = size;
    chunk->starts = words - (uintptr_t)chunk / 1024;
    chunk->lives = NULL;
    chunk->first = ((uintptr_t)chunk + head) / REAP_UNIT;
    chunk->end_unit = ((uintptr_t)chunk + size) / REAP_UNIT - 1;
    chunk->high = 0;
    ASSERT(chunk->first < chunk->end_unit);
    reap_zero_starts(words, size);
    words[head / 1024] |= (uint64_t)1 << head / REAP_UNIT % 64;
    words[size / 1024 - 1] |= (uint64_t)1 << 63;
    if (UNLIKELY(reap_instrumented))
        sanitizer_hide(reap_address(chunk->first), (chunk->end_unit - chunk->first) * REAP_UNIT);
}

#endif
