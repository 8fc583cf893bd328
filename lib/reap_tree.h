/* reap_tree.h: parents and children.   (floor 6)
 *
 *     parent ── children ──> newest ──next──> ... ──next──> oldest
 *                                   <──prev──     <──prev──
 *
 * Each reap has a lock for its list of children, so that several threads may create and destroy
 * children of one parent. It is held for a few instructions, and never while anything is called,
 * so threads spin for it.
 *
 * Fork: the child may inherit a lock that a thread it does not have was holding. A held lock's
 * value is therefore the process's generation, which each fork raises in the child: an older one
 * means that nobody is there to let go. `next` links are changed by single stores, in an order
 * that keeps the list whole at every moment; who takes over such a lock mends `prev` from them.
 *
 * Lock rank: the parent's lock is the only one taken here, and nothing is called while it is held.
 */
#ifndef REAP_TREE_H
#define REAP_TREE_H

#include "reap_chunk.h"

/* Done once, before the first reap: has the generation raised in forked children. */
void reap_tree_start(void);

/* Makes child the newest child of parent, or takes it from its parent, which may be NULL. */
void reap_tree_add(struct reap *child, struct reap *parent);
void reap_tree_remove(struct reap *child);

/* The newest child, or NULL. */
struct reap *reap_tree_newest(struct reap *parent);

/* How many children there are. */
size_t reap_tree_count(struct reap *parent);

#endif
