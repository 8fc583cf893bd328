/* reap_tree.c: parents and children. */
#include "reap_tree.h"

#include <pthread.h>
#include <sched.h>
#include <sys/single_threaded.h>

enum { SPINS = 64 }; /* tries before a waiter offers its processor */

static unsigned generation = 1; /* of the process: raised in the child of each fork */

static void in_forked_child(void) { generation++; }

void reap_tree_start(void) { pthread_atfork(NULL, NULL, in_forked_child); }

/* Rebuilds prev from next, after a thread that the fork left behind. */
static void mend(struct reap *parent)
{
    struct reap *prev = NULL;
    for (struct reap *child = parent->children; child; prev = child, child = child->next) child->prev = prev;
}

static NOINLINE void lock_slow(struct reap *parent)
{
    for (unsigned spins = 0;; spins++) {
        unsigned value = atomic_load_explicit(&parent->lock, memory_order_relaxed);
        if (value != generation &&
            atomic_compare_exchange_weak_explicit(&parent->lock, &value, generation, memory_order_acquire,
                                                  memory_order_relaxed)) {
            if (value != 0) mend(parent);
            return;
        }
        if (spins < SPINS)
            __builtin_ia32_pause();
        else
            sched_yield();
    }
}

static inline void lock(struct reap *parent)
{
    unsigned unlocked = 0;
    if (__libc_single_threaded && atomic_load_explicit(&parent->lock, memory_order_relaxed) == 0) {
        atomic_store_explicit(&parent->lock, generation, memory_order_relaxed);
        return;
    }
    if (LIKELY(atomic_compare_exchange_strong_explicit(&parent->lock, &unlocked, generation,
                                                       memory_order_acquire, memory_order_relaxed)))
        return;
    lock_slow(parent);
}

static inline void unlock(struct reap *parent)
{
    atomic_store_explicit(&parent->lock, 0, memory_order_release);
}

void reap_tree_add(struct reap *child, struct reap *parent)
{
    child->parent = parent;
    if (!parent) return;
    lock(parent);
    struct reap *head = parent->children;
    child->next = head;
    if (head) head->prev = child;
    atomic_signal_fence(memory_order_release); /* whole at every moment: see Fork */
    parent->children = child;
    unlock(parent);
}

void reap_tree_remove(struct reap *child)
{
    struct reap *parent = child->parent;
    if (!parent) return;
    lock(parent);
    if (child->next) child->next->prev = child->prev;
    if (child->prev)
        child->prev->next = child->next;
    else
        parent->children = child->next;
    unlock(parent);
}

struct reap *reap_tree_newest(struct reap *parent)
{
    if (!parent->children) return NULL;
    lock(parent);
    struct reap *newest = parent->children;
    unlock(parent);
    return newest;
}

size_t reap_tree_count(struct reap *parent)
{
    size_t count = 0;
    lock(parent);
    for (const struct reap *child = parent->children; child; child = child->next) count++;
    unlock(parent);
    return count;
}
