/* SPDX-License-Identifier: Apache-2.0 */
/* reap_tree.c: parents and children. */
#include "reap/reap_tree.h"

#include <sched.h>

#include "base/lock.h"

enum { SPINS = 64 }; /* tries before a waiter offers its processor */

unsigned reap_tree_generation = 1;

/* Rebuilds prev from next, after a fork has left behind the thread that was changing the list. */
static void mend(struct reap *parent)
{
    struct reap *prev = NULL;
    ASSERT(parent->lock == reap_tree_generation);
    for (struct reap *child = parent->children; child; prev = child, child = child->next) child->prev = prev;
}

void reap_tree_wait(struct reap *parent)
{
    for (unsigned spins = 0;; spins++) {
        unsigned value = atomic_load_explicit(&parent->lock, memory_order_relaxed);
        if (value != reap_tree_generation &&
            atomic_compare_exchange_weak_explicit(&parent->lock, &value, reap_tree_generation,
                                                  memory_order_acquire, memory_order_relaxed)) {
            if (value != 0) mend(parent);
            return;
        }
        if (spins < SPINS)
            lock_pause();
        else
            sched_yield();
    }
}

struct reap *reap_tree_after(const struct reap *top, const struct reap *reap)
{
    if (reap->children) return reap->children;
    while (reap != top && !reap->next) reap = reap->parent;
    ASSERT(reap == top || reap->next->parent == reap->parent);
    return reap == top ? NULL : reap->next;
}

struct reap *reap_tree_newest(struct reap *parent, unsigned depth)
{
    if (!reap_tree_has_children(parent)) return NULL;
    reap_tree_lock(parent);
    struct reap *newest = parent->children;
    ASSERT(!newest || newest->parent == parent);
    if (newest && newest->born < depth) newest = NULL;
    reap_tree_unlock(parent);
    return newest;
}

size_t reap_tree_count(struct reap *parent)
{
    size_t count = 0;
    reap_tree_lock(parent);
    for (const struct reap *child = parent->children; child; child = child->next) count++;
    reap_tree_unlock(parent);
    return count;
}

/* --- adopting -------------------------------------------------------------------------------- */

static SPARSE struct reap adopters; /* no reap: adopting threads take its lock */

void reap_tree_adopt_begin(void) { reap_tree_lock(&adopters); }
void reap_tree_adopt_end(void) { reap_tree_unlock(&adopters); }

void reap_tree_adopt(struct reap *reap, struct reap *parent)
{
    ASSERT(adopters.lock != 0 && !(parent && reap_tree_is_below(parent, reap)));
    reap_tree_remove(reap);
    reap->next = reap->prev = NULL;
    reap->born = 0;
    reap_tree_add(reap, parent);
}

bool reap_tree_is_below(const struct reap *reap, const struct reap *top)
{
    while (reap && reap != top) reap = reap->parent;
    return reap == top;
}
