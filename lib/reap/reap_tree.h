/* SPDX-License-Identifier: Apache-2.0 */
/* reap_tree.h: parents and children.
 *
 *     parent ── children ──> newest ──next──> ... ──next──> oldest
 *                                   <──prev──     <──prev──
 *
 * Each reap has a lock for its list of children, so that several threads may create and destroy
 * children of one parent. A thread holds it for a few instructions, and calls nothing meanwhile, so
 * other threads spin for it.
 *
 * Fork: the child may inherit a lock that was held by a thread which the child does not have. So a held
 * lock's value is the generation of the process, which each fork raises in the child. An older value means
 * that no thread is there to unlock. Single stores change the `next` links, in an order that keeps the list
 * whole at every moment. A thread that takes over such a lock rebuilds `prev` from `next`. The generation
 * also tells whether the thread that was ending a reap (REAP_ENDING) is there: a child that another thread
 * was destroying is whole until it is off the list, and its parent may end it.
 *
 * Lock rank: the one lock of all adopting threads; then a parent's lock. Under the latter nothing is called
 * or locked, but for the locks of reaps further down (reapHeldBytes): a reap that is in a locked list stays
 * there, and stays alive.
 */
#ifndef REAP_TREE_H
#define REAP_TREE_H

#include <sys/single_threaded.h>

#include "base/lock.h"
#include "region/reap_chunk.h"

extern unsigned reap_tree_generation; /* of the process: raised in the child of each fork (reap_enter.c) */

/* Takes a lock that is not free: waits for it, or takes over a lock that a fork left behind. */
void reap_tree_wait(struct reap *parent);

/* The rank of a parent's lock. The lock of adopting threads lies in a parent that is no reap and has no
 * tag. */
static inline enum lock_rank reap_tree_rank(const struct reap *parent)
{
    return parent->tag != 0 ? RANK_CHILDREN : RANK_ADOPTERS;
}

/* Locks the list of children of a reap that is in a list which this thread has locked. */
static inline void reap_tree_lock_below(struct reap *parent)
{
    unsigned unlocked = 0, generation = reap_tree_generation;
    if (__libc_single_threaded && atomic_load_explicit(&parent->lock, memory_order_relaxed) == 0)
        atomic_store_explicit(&parent->lock, generation, memory_order_relaxed);
    else if (UNLIKELY(!atomic_compare_exchange_strong_explicit(&parent->lock, &unlocked, generation,
                                                               memory_order_acquire, memory_order_relaxed)))
        reap_tree_wait(parent);
}

static inline void reap_tree_unlock_below(struct reap *parent)
{
    ASSERT(parent->lock == reap_tree_generation || lock_ranks_are_lost());
    atomic_store_explicit(&parent->lock, 0, memory_order_release);
}

/* Locks a parent's list of children. A process with one thread needs no atomic instruction. */
static inline void reap_tree_lock(struct reap *parent)
{
    ASSERT(lock_rank_is_next(reap_tree_rank(parent)));
    lock_note_rank(reap_tree_rank(parent), 1);
    reap_tree_lock_below(parent);
}

static inline void reap_tree_unlock(struct reap *parent)
{
    lock_note_rank(reap_tree_rank(parent), -1);
    reap_tree_unlock_below(parent);
}

/* Makes child the newest child of parent, which may be NULL, and returns the parent's flags. The child is
 * born at the depth of the parent's open marks, which changes under the lock (reap_mark.c). */
static inline unsigned reap_tree_add(struct reap *child, struct reap *parent)
{
    ASSERT(child != parent && child->tag != 0);
    child->parent = parent;
    if (!parent) return 0;
    reap_tree_lock(parent);
    unsigned flags = parent->flags;
    if (UNLIKELY(flags & REAP_SPECIAL)) child->born = reap_depth(parent);
    struct reap *head = parent->children;
    ASSERT(head != child && (!head || head->parent == parent));
    child->next = head;
    if (head) head->prev = child;
    atomic_signal_fence(memory_order_release); /* whole at every moment: see Fork */
    __atomic_store_n(&parent->children, child, __ATOMIC_RELAXED);
    reap_tree_unlock(parent);
    return flags;
}

/* Takes a child from its parent, if it has one. */
static inline void reap_tree_remove(struct reap *child)
{
    struct reap *parent = child->parent;
    if (!parent) return;
    reap_tree_lock(parent);
    struct reap *next = child->next, *prev = child->prev;
    ASSERT(prev ? prev->next == child : parent->children == child);
    ASSERT(!next || (next->parent == parent && next->prev == child));
    if (next) next->prev = prev;
    if (prev)
        prev->next = next;
    else
        __atomic_store_n(&parent->children, next, __ATOMIC_RELAXED);
    reap_tree_unlock(parent);
}

/* Takes the chunk that the parent keeps for its next child. NULL: none. */
static inline struct reap_chunk *reap_tree_take_cached(struct reap *parent)
{
    struct reap_chunk *chunk = atomic_load_explicit(&parent->cached_child, memory_order_relaxed);
    if (!chunk) return NULL;
    if (!__libc_single_threaded)
        return atomic_exchange_explicit(&parent->cached_child, NULL, memory_order_acquire);
    atomic_store_explicit(&parent->cached_child, NULL, memory_order_relaxed);
    return chunk;
}

/* Keeps a dead child's first chunk in its parent as the cached child, if the parent has none and the chunk
 * has the size of the next child's. The child is off the list by then, so a fork at any time finds it whole
 * or not at all. A parent in user memory keeps none: other processes may share that memory, but not the
 * chunk. False: the chunk is not kept. */
static inline bool reap_tree_keep_chunk(struct reap *parent, struct reap_chunk *chunk)
{
    struct reap_chunk *none = NULL;
    ASSERT(!reap_chunk_is_live(chunk) && !chunk->is_users);
    if (UNLIKELY(!parent || reap_instrumented || chunk->size != reap_child_size(parent))) return false;
    if (UNLIKELY(parent->flags & REAP_SOURCED) && !chunk_source_is_hoard(&parent->source)) return false;
    if (atomic_load_explicit(&parent->cached_child, memory_order_relaxed)) return false;
    if (!__libc_single_threaded)
        return atomic_compare_exchange_strong_explicit(&parent->cached_child, &none, chunk,
                                                       memory_order_release, memory_order_relaxed);
    atomic_store_explicit(&parent->cached_child, chunk, memory_order_relaxed);
    return true;
}

/* The reap after this one in the tree below top, parents before their children; NULL after the last one. No
 * thread may change the tree meanwhile. */
struct reap *reap_tree_after(const struct reap *top, const struct reap *reap);

/* Makes a reap the newest child of another parent, or a root (NULL). From adopt_begin to adopt_end no other
 * thread does so: otherwise two reaps could come to be below each other. */
void reap_tree_adopt_begin(void);
void reap_tree_adopt(struct reap *reap, struct reap *parent);
void reap_tree_adopt_end(void);

/* Is a reap equal to top, or below it? */
bool reap_tree_is_below(const struct reap *reap, const struct reap *top);

/* Are there children? The answer may be old at once, if other threads create or destroy some. */
static inline bool reap_tree_has_children(const struct reap *parent)
{
    return __atomic_load_n(&parent->children, __ATOMIC_RELAXED) != NULL;
}

/* The newest child if it was born at this depth or deeper, or NULL. Other threads may be destroying an older
 * one, so this is not to be read. */
struct reap *reap_tree_newest(struct reap *parent, unsigned depth);

/* The number of children. */
size_t reap_tree_count(struct reap *parent);

#endif
