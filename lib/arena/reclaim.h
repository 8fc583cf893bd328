/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.h: what the owners of slots and mappings tell the code that gives memory back to the OS, and the
 * sleep of the thread that purges. arena.h has the other calls. No lock; arena_make_room may pass a gate. */
#ifndef RECLAIM_H
#define RECLAIM_H

#include "base/base.h"

/* Makes room for `more` bytes. If they would come near the limit, all unused memory goes back. Returns false
 * with ENOMEM if they may not be held. */
bool arena_make_room(size_t more);

/* Slots or a mapping have come into use: an earlier fall may have been too deep. */
void arena_note_wanted(void);

/* Slots that become free from here on have been idle for so many ms already. For one thread. */
void arena_note_idle_for(uint64_t ms);

/* Sleeps until there is unused memory, or `other` returns true: for the thread that purges. */
void arena_wait_for_unused(bool (*other)(void));

/* Wakes that thread: something that `other` looks at has changed. */
extern HIDDEN _Atomic uint32_t arena_watched; /* 1 if it sleeps, or will */
void arena_wake_purger(void);
static inline void arena_tell_purger(void)
{
    if (UNLIKELY(atomic_load_explicit(&arena_watched, memory_order_relaxed) != 0)) arena_wake_purger();
}

#endif
