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

/* Starts the allocator, once; every slow path calls it. */
void hoard_start(void);

/* Registers the fork handlers and the report at exit, which need a started libc. Once; any time later. */
void hoard_start_late(void);

/* Starts the allocator. False: libc has no memory for the fork handlers; a later call may succeed. */
bool hoard_handles_forks(void);

/* The next slow path calls fn, once; NULL: nothing. In the child of a fork nothing is left to call. */
void hoard_start_later(void (*fn)(void));

/* What the next slow path for any kind of memory has to do: to register the fork handlers, for which libc had
 * no memory before; to start the purge thread; to call a function. */
enum hoard_due { HOARD_DUE_HANDLERS = 1, HOARD_DUE_THREAD = 2, HOARD_DUE_CALL = 4 };
extern HIDDEN _Atomic unsigned hoard_due;
void hoard_set_due(enum hoard_due what);
void hoard_do_what_is_due(void);
static inline void hoard_start_due(void)
{
    if (UNLIKELY(atomic_load_explicit(&hoard_due, memory_order_relaxed) != 0)) hoard_do_what_is_due();
}

#endif
