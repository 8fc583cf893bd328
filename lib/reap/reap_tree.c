/* SPDX-License-Identifier: Apache-2.0 */
/* reap_tree.c: parents and children. */
#include "reap/reap_tree.h"

#include "arena/sizeclass.h"
#include "base/lock.h"

/* Rebuilds prev from next, after a fork has left behind the thread that was changing the list. */
static void mend(struct reap_list *list)
{
    struct reap *prev = NULL;
    ASSERT(list->lock == process_generation);
    for (struct reap *reap = list->first; reap; prev = reap, reap = reap->next) reap->prev = prev;
}

void reap_tree_wait(struct reap_list *list)
{
    for (unsigned spins = 0;; spins++) {
        unsigned value = atomic_load_explicit(&list->lock, memory_order_relaxed);
        if (value != process_generation &&
            atomic_compare_exchange_weak_explicit(&list->lock, &value, process_generation,
                                                  memory_order_acquire, memory_order_relaxed)) {
            if (value != 0) mend(list);
            return;
        }
        lock_pause_or_yield(spins);
    }
}

SPARSE_LIVE_START struct root_list reap_roots[ROOT_LISTS];

bool reap_tree_walk(const struct reap_list *list, bool (*fn)(struct reap *reap, unsigned depth, void *arg),
                    void *arg)
{
    unsigned depth = 0;
    struct reap *reap = list->first;
    while (reap) {
        bool goes_on = fn(reap, depth, arg);
        struct reap *next = NULL;
        if (goes_on && reap_tree_has_children(reap)) {
            reap_tree_lock_below(&reap->below);
            next = reap->below.first;
            if (!next) reap_tree_unlock_below(&reap->below);
        }
        if (next) {
            reap = next;
            depth++;
            continue;
        }
        for (; depth > 0 && (!goes_on || !reap->next); depth--) {
            reap = reap->parent;
            reap_tree_unlock_below(&reap->below);
        }
        if (!goes_on) return false;
        reap = reap->next;
    }
    return true;
}

struct reap *reap_tree_after(const struct reap *top, const struct reap *reap)
{
    if (reap->below.first) return reap->below.first;
    while (reap != top && !reap->next) reap = reap->parent;
    ASSERT(reap == top || reap->next->parent == reap->parent);
    return reap == top ? NULL : reap->next;
}

struct reap *reap_tree_newest(struct reap *parent, unsigned depth)
{
    if (!reap_tree_has_children(parent)) return NULL;
    reap_tree_lock(&parent->below);
    struct reap *newest = parent->below.first;
    ASSERT(!newest || newest->parent == parent);
    if (newest && newest->born < depth) newest = NULL;
    reap_tree_unlock(&parent->below);
    return newest;
}

size_t reap_tree_count(struct reap *parent)
{
    size_t count = 0;
    reap_tree_lock(&parent->below);
    for (const struct reap *child = parent->below.first; child; child = child->next) count++;
    reap_tree_unlock(&parent->below);
    return count;
}

static struct reap_list adopters; /* an empty one: adopting threads take its lock */

void reap_tree_adopt_begin(void)
{
    ASSERT(lock_rank_is_next(RANK_ADOPTERS));
    lock_note_rank(RANK_ADOPTERS, 1);
    reap_tree_lock_below(&adopters);
}

void reap_tree_adopt_end(void)
{
    lock_note_rank(RANK_ADOPTERS, -1);
    reap_tree_unlock_below(&adopters);
}

void reap_tree_adopt(struct reap *reap, struct reap *parent)
{
    ASSERT(adopters.lock != 0 && !(parent && reap_tree_is_below(parent, reap)));
    reap_tree_remove(reap);
    reap->next = NULL;
    reap->born = 0;
    reap_tree_add(reap, parent);
}

bool reap_tree_is_below(const struct reap *reap, const struct reap *top)
{
    while (reap && reap != top) reap = reap->parent;
    return reap == top;
}
