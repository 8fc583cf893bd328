/* SPDX-License-Identifier: Apache-2.0 */
/* heap_path.h: what the two paths do differently, in one place.
 *
 *     rseq paths     a heap has an id, which its threads hold one at a time; its row and its superblocks'
 * words change by sections, also while its lock is held locked path    no restartable sequences: the heap
 * policy says which heap, and its lock covers all
 *
 * Callers are the same on both paths. Threads: as noted.
 */
#ifndef HEAP_PATH_H
#define HEAP_PATH_H

#include "base/lock.h"
#include "heap/heap_policy.h"
#include "os/rseq.h"

/* Is this the locked path? It is until rseq_init has chosen another. */
static inline bool heap_path_is_locked(void) { return cpu.ids == 0; }

/* The id that this thread holds now, or the id of the heap that the policy gave it; HEAP_POLICY_NONE: it has
 * none yet. And the id for an allocation, for which the policy may choose another. */
static inline unsigned heap_path_id(void) { return cpu.ids != 0 ? rseq_id() : heap_policy_last(); }
static inline unsigned heap_path_id_for_malloc(void) { return cpu.ids != 0 ? rseq_id() : heap_policy_next(); }

/* Has every section of the process started anew, where there are any. No lock may be held. */
static inline void heap_path_fence(void)
{
    if (cpu.ids != 0) rseq_fence();
}

/* Takes a lock that a stopped thread may hold. On the rseq paths it waits for a while only, since a
 * superblock can be had elsewhere, but `most` times in a row at most. False: the lock is not held. */
static inline bool heap_path_lock_soon(struct lock *lock, _Atomic unsigned *detours, unsigned most)
{
    if (cpu.ids != 0 && lock_try_for_a_while(lock)) return true;
    if (cpu.ids != 0 && atomic_fetch_add(detours, 1) < most) return false;
    lock_take(lock);
    return true;
}

/* A lock was taken in time: the next detours count anew. A store would be an atomic instruction each time. */
static inline void heap_path_in_time(_Atomic unsigned *detours)
{
    if (atomic_load_explicit(detours, memory_order_relaxed) != 0) atomic_store(detours, 0);
}

#endif
