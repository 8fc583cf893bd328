/* SPDX-License-Identifier: Apache-2.0 */
/* pagemap.h: from an address to the arena or mapping that it belongs to.
 *
 * free asks the pagemap before it trusts anything about a pointer. The map has a root of 8192 words (16384 on
 * aarch64), each for 16 GiB, and leaves of 4096 words, each for 4 MiB. A lookup accepts any bit pattern,
 * reads no user memory, and never faults. Addresses beyond PAGEMAP_ADDRESS_BITS belong to no arena. Leaves
 * are made when needed, and stay.
 *
 * Threads: any. There is no lock: each load of pagemap_find depends on the one before, and arenas are entered
 * with release. Only the thread that holds the addresses changes their entries: it enters them after it has
 * mapped them, and clears them before it unmaps them.
 */
#ifndef PAGEMAP_H
#define PAGEMAP_H

#include "arena/sizeclass.h"

/* The addresses that mmap gives unless asked for higher ones, also on processors with 52 or 57 bits. */
#ifdef __aarch64__
enum { PAGEMAP_ADDRESS_BITS = 48 };
#else
enum { PAGEMAP_ADDRESS_BITS = 47 };
#endif

enum {
    PAGEMAP_SHIFT = SUPERBLOCK_SHIFT + 6, /* an entry is for 4 MiB: 64 superblocks */
    PAGEMAP_LEAF_BITS = 12,
    PAGEMAP_ROOT_BITS = PAGEMAP_ADDRESS_BITS - PAGEMAP_SHIFT - PAGEMAP_LEAF_BITS,
};

struct arena;

struct pagemap_leaf {
    _Atomic(struct arena *) entries[1 << PAGEMAP_LEAF_BITS];
};

extern HIDDEN _Atomic(struct pagemap_leaf *) pagemap_root[1 << PAGEMAP_ROOT_BITS];

/* A load through a pointer comes after the load of the pointer. ThreadSanitizer does not know that. */
#ifdef __SANITIZE_THREAD__
#define PAGEMAP_LOAD memory_order_acquire
#else
#define PAGEMAP_LOAD memory_order_relaxed
#endif

static ALWAYS_INLINE struct arena *pagemap_find(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    if (UNLIKELY(address >> PAGEMAP_ADDRESS_BITS != 0)) return NULL;
    struct pagemap_leaf *leaf =
        atomic_load_explicit(&pagemap_root[address >> (PAGEMAP_SHIFT + PAGEMAP_LEAF_BITS)], PAGEMAP_LOAD);
    if (UNLIKELY(leaf == NULL)) return NULL;
    unsigned i = (unsigned)(address >> PAGEMAP_SHIFT) & ((1u << PAGEMAP_LEAF_BITS) - 1);
    return atomic_load_explicit(&leaf->entries[i], PAGEMAP_LOAD);
}

/* Enters the arena for every 4 MiB of the range. false: no memory for a leaf, and nothing is entered. */
bool pagemap_enter(const char *start, size_t size, struct arena *arena);

/* Clears the entries that are still the arena's: another one may have the addresses by now. */
void pagemap_clear(const char *start, size_t size, struct arena *arena);

#endif
