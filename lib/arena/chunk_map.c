/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/chunk_map.h"

#include "os/pages.h"

uint32_t *chunk_map_entries;
SPARSE _Atomic(uintptr_t) chunk_map_owners[CHUNK_MAP_ARENAS];
char *chunk_map_bits;

enum {
    PART = ARENA / CHUNK_MAP_UNIT / 8, /* bytes of one array of bits for an arena */
    TOGETHER = 8,                      /* parts that can be touched from one moment on: fewer mappings */
    ENTRIES = CHUNK_MAP_ARENAS * (ARENA >> CHUNK_MAP_ENTRY_SHIFT) * (int)sizeof *chunk_map_entries /* bytes */
};

static const size_t BITS = 2 * (size_t)CHUNK_MAP_BITS; /* of both arrays */

/* Of two threads that map a table at once, the first one's stays. Returns it. NULL: nothing was mapped. */
static void *keep_first(void *table, void *start, size_t size)
{
    void *there = NULL;
    if (start == NULL ||
        __atomic_compare_exchange_n((void **)table, &there, start, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return start;
    /* Not pages_unmap: what the OS refuses to unmap serves as memory there, and bits cannot be touched. */
    pages_try_unmap(start, size);
    return there;
}

bool chunk_map_start(void)
{
    if (__atomic_load_n(&chunk_map_entries, __ATOMIC_ACQUIRE) != NULL) return true;
    void *entries = pages_map_table(ENTRIES);
    if (entries != NULL) pages_huge(entries, ENTRIES, false); /* a program touches few of its pages */
    return keep_first(&chunk_map_entries, entries, ENTRIES) != NULL;
}

static void *reserve_bits(void)
{
    void *bits = pages_reserve(BITS);
    if (bits != NULL) pages_name(bits, BITS, PAGES_TABLES); /* its parts would have it each */
    return bits;
}

bool chunk_map_claim_slow(const void *chunk)
{
    uintptr_t number = (uintptr_t)chunk >> PAGEMAP_SHIFT, nobody = 0;
    _Atomic(uintptr_t) *owner = &chunk_map_owners[number & (CHUNK_MAP_ARENAS - 1)];
    char *bits = __atomic_load_n(&chunk_map_bits, __ATOMIC_ACQUIRE);
    if (bits == NULL) bits = keep_first(&chunk_map_bits, reserve_bits(), BITS);
    if (bits == NULL || atomic_load(owner) != 0) return false;
    char *parts = bits + (number & (CHUNK_MAP_ARENAS - TOGETHER)) * PART;
    /* A free reads eight bytes of start bits, which may reach into the next part. */
    if (!pages_commit(parts, TOGETHER * PART + PAGE)) return false;
    if (!pages_commit(parts + CHUNK_MAP_BITS, TOGETHER * PART)) return false;
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
