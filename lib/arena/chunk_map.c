/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_map.c: see chunk_map.h. */
#include "arena/chunk_map.h"

#include "os/pages.h"

uint32_t *chunk_map_entries;
SPARSE _Atomic(uintptr_t) chunk_map_owners[CHUNK_MAP_ARENAS];
char *chunk_map_bits;

enum { PART = ARENA / CHUNK_MAP_UNIT / 8 /* bytes of one array of bits for an arena */ };

bool chunk_map_start(void)
{
    enum { BYTES = CHUNK_MAP_ARENAS * (ARENA >> CHUNK_MAP_ENTRY_SHIFT) * sizeof(uint32_t) };
    uint32_t *none = NULL;
    if (__atomic_load_n(&chunk_map_entries, __ATOMIC_ACQUIRE) != NULL) return true;
    uint32_t *entries = pages_map(BYTES, PAGE);
    if (entries == NULL) return false;
    pages_huge(entries, BYTES, false); /* a program touches few of its pages */
    if (!__atomic_compare_exchange_n(&chunk_map_entries, &none, entries, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        pages_unmap(entries, BYTES);
    return true;
}

/* Reserves addresses for the bits. Of two threads that do so at once, the first one's stay. */
static char *reserve(void)
{
    char *bits = __atomic_load_n(&chunk_map_bits, __ATOMIC_ACQUIRE), *there = NULL;
    if (bits != NULL) return bits;
    bits = pages_reserve(2 * (size_t)CHUNK_MAP_BITS);
    if (bits == NULL) return NULL;
    if (__atomic_compare_exchange_n(&chunk_map_bits, &there, bits, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return bits;
    /* Not pages_unmap: what the OS refuses to unmap serves as memory there, and this cannot be touched. */
    pages_try_unmap(bits, 2 * (size_t)CHUNK_MAP_BITS);
    return there;
}

bool chunk_map_claim_slow(const void *chunk)
{
    uintptr_t number = (uintptr_t)chunk >> PAGEMAP_SHIFT, nobody = 0;
    _Atomic(uintptr_t) *owner = &chunk_map_owners[number & (CHUNK_MAP_ARENAS - 1)];
    char *bits = reserve();
    if (bits == NULL || atomic_load(owner) != 0) return false;
    char *part = bits + (number & (CHUNK_MAP_ARENAS - 1)) * PART;
    /* A free reads eight bytes of start bits, which may reach into the next part. */
    if (!pages_commit(part, PART + PAGE) || !pages_commit(part + CHUNK_MAP_BITS, PART)) return false;
    return atomic_compare_exchange_strong(owner, &nobody, number) || nobody == number;
}

void chunk_map_forget(const char *base)
{
    uintptr_t number = (uintptr_t)base >> PAGEMAP_SHIFT;
    _Atomic(uintptr_t) *owner = &chunk_map_owners[number & (CHUNK_MAP_ARENAS - 1)];
    if (atomic_load(owner) != number) return;
    char *part = chunk_map_bits + (number & (CHUNK_MAP_ARENAS - 1)) * PART;
    if (PART % PAGE == 0) {
        pages_purge(part, PART);
        pages_purge(part + CHUNK_MAP_BITS, PART);
    }
    atomic_store(owner, 0);
}
