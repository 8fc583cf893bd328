/* SPDX-License-Identifier: Apache-2.0 */
/* heap_path.h: the differences between the two paths, in one place.
 *
 *     rseq paths     a heap has an id, which one thread at a time holds; sections change its row and its
 *                    superblocks' words, also while its lock is held
 *     locked path    no restartable sequences: the heap policy says which heap, and its lock covers all
 *
 * Callers do the same on both paths. Threads: any, if no comment says otherwise.
 */
#ifndef HEAP_PATH_H
#define HEAP_PATH_H

#include "base/lock.h"
#include "heap/heap_policy.h"
#include "os/rseq.h"

/* Returns true on the locked path. It is until rseq_init has chosen another. */
static inline bool heap_path_is_locked(void) { return cpu.ids == 0; }

/* The id that this thread holds now, or the id of the heap that the policy gave it (HEAP_POLICY_NONE: none
 * yet). The second call is for an allocation, for which the policy may choose another heap. */
static inline unsigned heap_path_id(void) { return cpu.ids != 0 ? rseq_id() : heap_policy_last(); }
static inline unsigned heap_path_id_for_malloc(void) { return cpu.ids != 0 ? rseq_id() : heap_policy_next(); }

/* Takes a lock that a stopped thread may hold. On the rseq paths the thread waits for a short time only,
 * since it can get a superblock elsewhere, but it gives up `most` times in a row at most. False: the lock is
 * not held. The load of the count comes first since each store would be an atomic instruction. */
static inline bool heap_path_lock_soon(struct lock *lock, _Atomic unsigned *detours, unsigned most)
{
    if (cpu.ids == 0 || !lock_try_for_a_while(lock)) {
        if (cpu.ids != 0 && atomic_fetch_add(detours, 1) < most) return false;
        lock_take(lock);
    }
    if (atomic_load_explicit(detours, memory_order_relaxed) != 0) atomic_store(detours, 0);
    return true;
}

#endif
