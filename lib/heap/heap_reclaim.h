/* SPDX-License-Identifier: Apache-2.0 */
/* heap_reclaim.h: how a thread gets idle superblocks out of other heaps. */
#ifndef HEAP_RECLAIM_H
#define HEAP_RECLAIM_H

#include "heap/heap_table.h"

/* Between these two a heap's row changes under its lock only. heap_visit comes before the lock is taken. */
void heap_visit(struct heap *heap);
void heap_visit_ends(struct heap *heap);

/* Gives idle superblocks of other heaps to the global heap, before the arenas ask the OS for memory. True: it
 * gave some. In transit, without a lock. */
bool heap_scavenge(const struct heap *mine);

/* heap_send_idle_home once after each purge, for the ends of slow paths. It leaves orphans to heap_scavenge:
 * a child of one thread may be in a sandbox that forbids the fence. */
extern HIDDEN _Atomic uint64_t heap_looked_at;
static inline void heap_look_if_purged(void)
{
    if (UNLIKELY(atomic_load_explicit(&heap_looked_at, memory_order_relaxed) != arena_purged_at()))
        heap_send_idle_home(false);
}

/* Empties long queues, whose heaps seem to do nothing any more. For a thread that frees, without a lock. */
void heap_empty_queues(void);

#endif
