/* SPDX-License-Identifier: Apache-2.0 */
/* guarded_map.h: the owner of an address that the map of arenas does not know.
 *
 * Pieces of memory that do not overlap are the nodes of a treap: a search tree by address, and a heap by a
 * number computed from the address, so that its depth is that of a random tree. A dead piece stays, to answer
 * what was there, until a new piece takes its place or enough others have died after it.
 *
 * Threads: any. Lock rank: concurrency.md; no function is called and no lock taken while it is held.
 */
#ifndef GUARDED_MAP_H
#define GUARDED_MAP_H

#include "base/base.h"

struct guarded_node {
    struct guarded_node *left, *right;
    uintptr_t start, end;
    void *chunk; /* the answer for an address in [start, end) */
    bool dead;
    size_t kept;               /* bytes that a dead piece still has */
    struct guarded_node *next; /* the piece that died after it */
};

/* Enters a piece, and takes out the pieces that overlap it. */
void guarded_map_add(struct guarded_node *node);

/* Marks a piece as dead; it keeps `kept` bytes. */
void guarded_map_bury(struct guarded_node *node, size_t kept);

/* Takes out and returns the oldest dead piece, if there are more than `count` dead pieces or they keep more
 * than `bytes`; or NULL. */
struct guarded_node *guarded_map_exhume(size_t count, size_t bytes);

/* The chunk of the live piece that holds a pointer, and the piece's bytes; NULL for any other value. */
void *guarded_map_find(const void *pointer, size_t *size);

/* The chunk of the dead piece that held the pointer, unless a live piece has its memory. The backend may have
 * given the memory to another object: this is for callers who know that no live object is there. */
void *guarded_map_find_dead(const void *pointer);

/* Returns true if a dead piece that held the pointer still keeps its memory. Then no other object is
 * there. */
bool guarded_map_is_kept(const void *pointer);

/* Between these two no other thread uses the map. They also serve for what threads do one after the other
 * with the zones of objects: a tool that is told that they may be touched must not be told otherwise before
 * they were. */
void guarded_map_hold(void);
void guarded_map_let_go(void);

void guarded_map_fork_prepare(void);
void guarded_map_fork_parent(void);
void guarded_map_fork_child(void);

#endif
