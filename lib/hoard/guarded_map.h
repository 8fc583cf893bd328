/* SPDX-License-Identifier: Apache-2.0 */
/* guarded_map.h: whose memory an address is in, where the map of arenas does not tell.
 *
 * Pieces of memory that do not overlap, each a node of a treap: a search tree by address, and a heap by a
 * number that is made of the address, so that it is as deep as a tree of random shape. Pieces that are dead
 * stay, for those who ask what was there, until others are entered in their place, or so many died later.
 *
 * Threads: any. Lock rank: concurrency.md; nothing is called or taken within.
 */
#ifndef GUARDED_MAP_H
#define GUARDED_MAP_H

#include "base/base.h"

struct guarded_node {
    struct guarded_node *left, *right;
    uintptr_t start, end;
    void *chunk; /* what is said of an address in [start, end) */
    bool dead;
    size_t kept; /* bytes that a dead one has still */
    struct guarded_node *next; /* the one that died after it */
};

/* Enters a piece, in the place of those that it overlaps, which are not found any more. */
void guarded_map_add(struct guarded_node *node);

/* This one is dead, and keeps so many bytes. */
void guarded_map_bury(struct guarded_node *node, size_t kept);

/* The oldest of the dead, taken out, when there are more than so many, or they keep more bytes; or NULL. */
struct guarded_node *guarded_map_exhume(size_t count, size_t bytes);

/* The chunk of the live piece that holds a pointer, and the piece's bytes; NULL for any other value. */
void *guarded_map_find(const void *pointer, size_t *size);

/* The chunk of a dead piece that held it, unless its memory is a live one's. The backend may have made
 * something else of it: this is for those who know that it is nothing alive. */
void *guarded_map_find_dead(const void *pointer);

void guarded_map_fork_prepare(void);
void guarded_map_fork_parent(void);
void guarded_map_fork_child(void);

#endif
