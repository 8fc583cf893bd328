/* SPDX-License-Identifier: Apache-2.0 */
/* bin.h: the superblocks of one class on one heap, by fullness.
 *
 *     groups   0: under 1/8 free    1: 1/8 to 2/8    ...    7: 7/8 and more    (empty ones are elsewhere)
 *     mask     which groups have superblocks
 *
 * Allocation takes from the fullest group that is worth it (ASPLOS 2000, section 3): one with an eighth free.
 * So a superblock that goes into use gives an eighth of its blocks before the heap looks for the next one.
 * The superblock that changed last is at the front of its group.
 *
 * Locking: the lock of the heap that the bin is part of.
 */
#ifndef BIN_H
#define BIN_H

#include "arena/superblock.h"

struct bin {
    struct list groups[GROUP_EMPTY];
    uint32_t mask;
};

/* Puts a superblock at the front of a group (0 to 7), and records the group in it. */
void bin_add(struct bin *bin, struct superblock *sb, unsigned group);

void bin_remove(struct bin *bin, struct superblock *sb);

/* The fullest superblock with at least `least` eighths free, still in the bin; or NULL. */
struct superblock *bin_fullest(const struct bin *bin, unsigned least);

/* The emptiest superblock, still in the bin; or NULL. */
struct superblock *bin_emptiest(const struct bin *bin);

struct bin_sums {
    size_t slots;
    size_t eighths; /* of slots, recorded as free */
};

/* For tests and assertions: returns true if the lists, the mask and the superblocks of heap `id`'s bin of the
 * class agree, and adds to the sums. The active superblock may not be in it. If no section can change a word
 * meanwhile, `words` asks for the invariants of each superblock too. */
bool bin_is_valid(const struct bin *bin, unsigned id, unsigned class, const struct superblock *active,
                  bool words, struct bin_sums *sums);

#endif
