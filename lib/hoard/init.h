/* SPDX-License-Identifier: Apache-2.0 */
/* init.h: the start of the allocator, in three steps, once each.
 *
 *     the first slow path of any thread    options, size classes, ids, topology, policies, locks
 *     once libc is up                      fork handlers, the report at exit
 *     the next slow path after a fork      the purge thread, in the child
 *
 * Threads: any. If another thread of the parent was just starting at the fork, the child starts by itself.
 */
#ifndef INIT_H
#define INIT_H

#include "base/base.h"
#include "hoard/purge_thread.h"

/* Starts the allocator, once; every slow path calls it. */
void hoard_start(void);

/* Registers the fork handlers and the report at exit, which need a started libc. Once; any time later. */
void hoard_start_late(void);

/* Starts the allocator. False: libc has no memory for the fork handlers; a later call may succeed. */
bool hoard_handles_forks(void);

/* The next slow path calls fn, once; NULL: nothing. In the child of a fork nothing is left to call. */
void hoard_start_later(void (*fn)(void));

/* Registers the fork handlers, if libc had no memory for them before, and does what else is due:
 * starts the purge thread, calls a function. The first slow path for any kind of memory calls it. */
void hoard_start_what_is_due(void);
static inline void hoard_start_due(void)
{
    if (UNLIKELY(atomic_load_explicit(&purge_thread_is_due, memory_order_relaxed))) hoard_start_what_is_due();
}

#endif
