/* SPDX-License-Identifier: Apache-2.0 */
/* heap_policy.h: the heap that a thread allocates from, where heaps have locks.
 *
 * The policies of McDowell, Eggers and Gribble (PPoPP 2003, 2.2 and table 1), and some more; 2P is twice the
 * number of CPUs, as in Hoard (ASPLOS 2000, section 3.3).
 *
 *     heaps=        the heap of an allocation
 *     cid, cpu      one of 2P, dealt to threads in turn; on the rseq paths it is the id, and not asked here
 *     core          that of the core on which the thread runs: SMT siblings share it
 *     thread        the thread's own (StaticHeap)
 *     dynamic:N     one of 2P, and after N allocations the next in turn (DynamicHeap)
 *     roundrobin    one of 2P, the next in turn for each allocation (RoundRobin)
 *     single        the only one (BaseAlloc, with one lock)
 *
 * heaps=thread: a new thread gets the least id whose thread has ended, as the kernel sees it: destructors
 * that run last in a thread allocate as before. The last threads of more than there are ids share heap 0.
 *
 * Threads: any; no call waits for a lock. The state of a thread is thread-local, the rest one atomic each.
 */
#ifndef HEAP_POLICY_H
#define HEAP_POLICY_H

#include "base/base.h"

enum { HEAP_POLICY_NONE = UINT16_MAX }; /* no heap yet */

/* On the locked path this thread's heap, plus one; 0: none yet. With it tests act as many processors. */
extern HIDDEN __thread uint16_t heap_of_thread __attribute__((tls_model("initial-exec")));

bool heap_policy_needs_locks(void);

/* Runs after the options are read, and before the first allocation. */
void heap_policy_init(void);

/* The heap id for this thread's next allocation. */
unsigned heap_policy_next(void);

/* The heap id that this thread allocated from last, or HEAP_POLICY_NONE. */
unsigned heap_policy_last(void);

/* Returns true if this heap's thread has ended since the last call, and the heap has no new one. */
bool heap_policy_has_ended(unsigned id);

/* In a forked child, where this thread is the only one: makes the mutexes of heaps=thread again. */
void heap_policy_fork_child(void);

#endif
