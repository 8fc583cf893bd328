/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_map.h: for the chunks of reaps: where objects start, which live, and whose they are.
 *
 * The map is three arrays, which the low 32 bits of an address index. So a free finds its bits, and its reap,
 * by the address alone; and the bits of chunks that a program uses at once lie side by side, while headers at
 * multiples of 64 KiB meet in one set of the cache.
 *
 *     address    | high : 32 | number of the arena : 10 | offset in the arena : 22 |
 *     starts     a bit for 16 bytes
 *     lives      a bit for 16 bytes
 *     entries    half a word for 1 KiB
 *
 * Arenas whose addresses differ by a multiple of 4 GiB would share a part of the map. The part belongs to the
 * first such arena that asks for it, until this arena is unmapped. A chunk in another arena has its bits in
 * itself, as chunks in user memory do, and its frees take slow paths. Addresses (80 MiB) are reserved when
 * the first reap is made; memory comes for an arena's part.
 *
 * Threads: any may look. Bits and entries of a chunk belong to the thread that has the chunk.
 */
#ifndef CHUNK_MAP_H
#define CHUNK_MAP_H

#include "arena/arena.h"

enum {
    CHUNK_MAP_UNIT = 16,        /* bytes for a bit */
    CHUNK_MAP_ENTRY_SHIFT = 10, /* an entry is for 1 KiB: no chunk is smaller */
    CHUNK_MAP_ARENAS = 1024,    /* parts of the map */
    CHUNK_MAP_BITS = CHUNK_MAP_ARENAS * (ARENA / CHUNK_MAP_UNIT / 8) /* bytes of one array of bits */
};

/* Of a listed chunk: its reap; of another one with live bits: the chunk, and 1; else 0 (reap_free.h). These
 * are the low halves of addresses: the high half is that of the arena that has this part of the map. */
extern HIDDEN uint32_t *chunk_map_entries;

/* Maps the entries, 16 MiB of addresses. Before the first reap. False: no memory. */
bool chunk_map_start(void);

/* The start bits, and the live bits behind them. NULL: there are no addresses for them. */
extern HIDDEN char *chunk_map_bits;

static ALWAYS_INLINE uint32_t *chunk_map_entry(const void *pointer)
{
    return &chunk_map_entries[(uint32_t)(uintptr_t)pointer >> CHUNK_MAP_ENTRY_SHIFT];
}

/* The words with the start bit and the live bit of an address in an arena that has its part of the map. */
static ALWAYS_INLINE uint32_t *chunk_map_starts(const void *pointer)
{
    return (uint32_t *)(void *)chunk_map_bits + (uint32_t)(uintptr_t)pointer / CHUNK_MAP_UNIT / 32;
}

static ALWAYS_INLINE uint32_t *chunk_map_lives(const void *pointer)
{
    return chunk_map_starts(pointer) + CHUNK_MAP_BITS / 4;
}

/* Returns true if two addresses have the same high half. */
static ALWAYS_INLINE bool chunk_map_is_near(const void *one, const void *other)
{
    return ((uintptr_t)one ^ (uintptr_t)other) >> 32 == 0;
}

extern HIDDEN _Atomic(uintptr_t) chunk_map_owners[CHUNK_MAP_ARENAS];

/* Returns true if the arena of an address has its part of the map. Takes any value. */
static inline bool chunk_map_has(const void *pointer)
{
    uintptr_t number = (uintptr_t)pointer >> PAGEMAP_SHIFT;
    const _Atomic(uintptr_t) *owner = &chunk_map_owners[number & (CHUNK_MAP_ARENAS - 1)];
    return LIKELY(atomic_load_explicit(owner, memory_order_acquire) == number);
}

/* Claims the map's part for a chunk's arena of slots. False: it is another's, or there is no memory. */
bool chunk_map_claim_slow(const void *chunk);
static inline bool chunk_map_claim(const void *chunk)
{
    return chunk_map_has(chunk) || chunk_map_claim_slow(chunk);
}

/* Before an arena without chunks is unmapped: gives its part of the map back. */
void chunk_map_forget(const char *base);

#endif
