/* SPDX-License-Identifier: Apache-2.0 */
/* reap_tree.h: parents and children.
 *
 *     parent ── children ──> newest ──next──> ... ──next──> oldest
 *                                   <──prev──     <──prev──
 *
 * Each reap has a lock for its list of children, so that several threads may create and destroy children of
 * one parent. Roots are in one of ROOT_LISTS lists, by the 64 KiB in which they lie: so each heap id's roots
 * have lists of their own. A list keeps one dead root for the next, as a parent does a child (lifecycle.c).
 * Roots in user memory, which other processes may share, are in no list; user_memory.h has them.
 *
 * A reap that is in a locked list stays there, and stays alive: it leaves the list before anything of it
 * ends. A thread that changes a list holds its lock for a few instructions, and calls nothing meanwhile. A
 * thread that walks (reap_tree_walk) locks the lists on its way down.
 *
 * Fork: the child may inherit a lock of a thread that it does not have. So a held lock's value is the
 * process_generation, which each fork raises in the child. Single stores change the `next` links, in an order
 * that keeps the list whole at every moment, and a thread that takes over such a lock rebuilds `prev`. The
 * generation also tells whether the thread that was ending a reap (REAP_ENDING) exists: a reap that it was
 * destroying is whole until it leaves the list, and its parent may end it.
 *
 * Lock rank: the one lock of all adopting threads; then a list's lock. Under a list's lock a thread locks
 * only the lists of reaps further down. A walk may have frozen all chunks before (chunk_freeze), so any other
 * holder of a list's lock waits for nothing. It may try a shared reap's lock, but not wait for this lock.
 */
#ifndef REAP_TREE_H
#define REAP_TREE_H

#include <sys/single_threaded.h>

#include "base/lock.h"
#include "hoard/redirect.h"
#include "region/region.h"

enum { ROOT_LISTS = 64 };
struct root_list {
    _Alignas(64) struct reap_list list;
};
extern struct root_list reap_roots[ROOT_LISTS];

/* The byte of the lists of roots: the step of 8 KiB, and no votes. */
enum { ROOT_VOTES = 1 };

static inline unsigned reap_root_number(const struct reap *reap)
{
    return (unsigned)((uintptr_t)reap / SUPERBLOCK % ROOT_LISTS);
}

/* The number of the list that has kept a dead root or child for this thread's next, plus 1; 0: none yet. */
extern HIDDEN __thread uint8_t reap_kept_root __attribute__((tls_model("initial-exec")));
static_assert(ROOT_LISTS <= UINT8_MAX, "a number of a list, plus 1, is a byte");

/* Returns true if the reap is being cleared or destroyed. A function that it calls then must not clear or
 * destroy it again. A thread that a fork has left behind destroys nothing. */
static inline bool reap_tree_is_going(const struct reap *reap)
{
    return UNLIKELY(reap->flags & REAP_ENDING) && reap->ending_in == process_generation;
}

/* Takes a lock that is not free: waits for it, or takes over a lock that a fork left behind. */
void reap_tree_wait(struct reap_list *list);

/* Locks a list. False: it is locked. A process with one thread needs no atomic instruction. */
static ALWAYS_INLINE bool reap_tree_try_lock(struct reap_list *list)
{
    unsigned unlocked = 0, generation = process_generation;
    if (!__libc_single_threaded)
        return atomic_compare_exchange_strong_explicit(&list->lock, &unlocked, generation,
                                                       memory_order_acquire, memory_order_relaxed);
    if (UNLIKELY(atomic_load_explicit(&list->lock, memory_order_relaxed) != 0)) return false;
    atomic_store_explicit(&list->lock, generation, memory_order_relaxed);
    return true;
}

/* Locks the list of children of a reap that is in a list which this thread has locked. */
static inline void reap_tree_lock_below(struct reap_list *list)
{
    if (UNLIKELY(!reap_tree_try_lock(list))) reap_tree_wait(list);
}

static inline void reap_tree_unlock_below(struct reap_list *list)
{
    ASSERT(list->lock == process_generation);
    atomic_store_explicit(&list->lock, 0, memory_order_release);
}

static inline void reap_tree_lock(struct reap_list *list)
{
    ASSERT(lock_rank_is_next(RANK_CHILDREN));
    lock_note_rank(RANK_CHILDREN, 1);
    reap_tree_lock_below(list);
}

static inline void reap_tree_unlock(struct reap_list *list)
{
    lock_note_rank(RANK_CHILDREN, -1);
    reap_tree_unlock_below(list);
}

static inline void reap_tree_push(struct reap_list *list, struct reap *reap)
{
    struct reap *head = list->first;
    ASSERT(head != reap && (!head || head->parent == reap->parent));
    reap->next = head;
    if (head) head->prev = reap;
    atomic_signal_fence(memory_order_release); /* whole at every moment: see Fork */
    __atomic_store_n(&list->first, reap, __ATOMIC_RELAXED);
}

static inline void reap_tree_unlink(struct reap_list *list, struct reap *reap)
{
    struct reap *next = reap->next, *prev = reap->prev;
    ASSERT(prev ? prev->next == reap : list->first == reap);
    ASSERT(!next || (next->parent == reap->parent && next->prev == reap));
    if (next) next->prev = prev;
    if (prev)
        prev->next = next;
    else
        __atomic_store_n(&list->first, next, __ATOMIC_RELAXED);
    reap->prev = NULL;
}

/* The list that a reap is in, or belongs into. NULL: it is a root in user memory. */
static inline struct reap_list *reap_tree_list_of(const struct reap *reap)
{
    if (LIKELY(reap->parent != NULL)) return &reap->parent->below;
    bool is_users = reap_first_chunk(reap)->is_users;
    return is_users ? NULL : &reap_roots[reap_root_number(reap)].list;
}

/* Lists a reap, and returns its parent's flags (0: it has none). The list is locked: the reap is born at the
 * depth of the parent's open marks, which is lowered under the lock (reap_mark.c). */
static ALWAYS_INLINE unsigned reap_tree_add_locked(struct reap_list *list, struct reap *reap)
{
    ASSERT(reap->parent != reap && reap->tag != 0 && !reap->prev);
    unsigned flags = reap->parent ? __atomic_load_n(&reap->parent->flags, __ATOMIC_ACQUIRE) : 0;
    if (UNLIKELY(flags & REAP_MARKED)) reap->born = __atomic_load_n(&reap->parent->depth, __ATOMIC_RELAXED);
    reap_tree_push(list, reap);
    return flags;
}

/* Makes child the newest child of parent, which may be NULL, and returns the parent's flags. */
static inline unsigned reap_tree_add(struct reap *child, struct reap *parent)
{
    child->parent = parent;
    struct reap_list *list = reap_tree_list_of(child);
    if (!list) return 0;
    reap_tree_lock(list);
    unsigned flags = reap_tree_add_locked(list, child);
    reap_tree_unlock(list);
    return flags;
}

static inline void reap_tree_remove(struct reap *reap)
{
    struct reap_list *list = reap_tree_list_of(reap);
    if (!list) return;
    reap_tree_lock(list);
    reap_tree_unlink(list, reap);
    reap_tree_unlock(list);
}

/* Calls fn for the reaps of a locked list, newest first, and all below: parents before their children,
 * under the lock of their list. depth is 0 in the list itself. Stops, and returns false, when fn does. */
bool reap_tree_walk(const struct reap_list *list, bool (*fn)(struct reap *reap, unsigned depth, void *arg),
                    void *arg);

/* Sets the cached reap of a locked list. A dead reap is off the list by then, and one that begins is not on
 * it: so a fork at any time finds it in one place at most. */
static ALWAYS_INLINE void reap_tree_set_cached(struct reap_list *list, struct reap *reap)
{
    ASSERT(!reap || (reap->tag == 0 && !reap_chunk_is_live(reap_first_chunk(reap))));
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&list->cached, reap, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* Makes a dead reap the cached one of a locked list, if there is none. */
static ALWAYS_INLINE bool reap_tree_keep(struct reap_list *list, struct reap *reap)
{
    if (list->cached) return false;
    reap_tree_set_cached(list, reap);
    return true;
}

/* Returns true if a parent may keep a child: not in user memory, which other processes may share. */
static inline bool reap_tree_may_keep(const struct reap *parent)
{
    return LIKELY(!reap_first_chunk(parent)->is_users);
}

/* Takes the cached reap, of any size. NULL: there is none. */
static inline struct reap *reap_tree_take_cached(struct reap_list *list)
{
    if (!atomic_load_explicit(&list->cached, memory_order_relaxed)) return NULL;
    reap_tree_lock(list);
    struct reap *reap = atomic_load_explicit(&list->cached, memory_order_relaxed);
    reap_tree_set_cached(list, NULL);
    reap_tree_unlock(list);
    return reap;
}

/* The reap after this one in the tree below top, parents before their children; NULL after the last one. No
 * thread may change the tree meanwhile. */
struct reap *reap_tree_after(const struct reap *top, const struct reap *reap);

/* Makes a reap the newest child of another parent, or a root (NULL). From adopt_begin to adopt_end no other
 * thread does so: otherwise two reaps could come to be below each other. */
void reap_tree_adopt_begin(void);
void reap_tree_adopt(struct reap *reap, struct reap *parent);
void reap_tree_adopt_end(void);

/* Returns true if a reap is equal to top, or below it. */
bool reap_tree_is_below(const struct reap *reap, const struct reap *top);

/* Return true if a reap is in the list, and if it has children: old at once, where other threads act. */
static inline bool reap_tree_is_any(const struct reap_list *list)
{
    return __atomic_load_n(&list->first, __ATOMIC_RELAXED) != NULL;
}

static inline bool reap_tree_has_children(const struct reap *reap) { return reap_tree_is_any(&reap->below); }

/* The newest child if born at this depth or deeper, or NULL. An older one is not to be read: it may go. */
struct reap *reap_tree_newest(struct reap *parent, unsigned depth);

size_t reap_tree_count(struct reap *parent);

#endif
