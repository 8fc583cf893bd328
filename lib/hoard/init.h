/* SPDX-License-Identifier: Apache-2.0 */
/* init.h: what is started once, and by whom.
 *
 *     the first slow path of any thread    options, size classes, ids, topology, policies, locks
 *     once libc is up                      fork handlers, the report at exit
 *     the next slow path after a fork      the thread that purges, in the child
 *
 * Threads: any. A child whose parent was just starting in another thread starts by itself.
 */
#ifndef INIT_H
#define INIT_H

#include "base/base.h"
#include "hoard/purge_thread.h"

/* Starts what has to be started, once; called by every slow path. */
void hoard_start(void);

/* Fork handlers, stats at exit: what cannot be done before libc has started. Once; any time after. */
void hoard_start_late(void);

/* Fork handlers that libc had no memory for, and the thread that gives unused memory back, if it is asked
 * for: whatever memory is for, the first that is asked for starts it. */
void hoard_start_what_is_due(void);
static inline void hoard_start_due(void)
{
    if (UNLIKELY(atomic_load_explicit(&purge_thread_is_due, memory_order_relaxed))) hoard_start_what_is_due();
}

#endif
