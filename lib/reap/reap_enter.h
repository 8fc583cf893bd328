/* SPDX-License-Identifier: Apache-2.0 */
/* reap_enter.h: which reaps threads are in: between reapEnter and reapLeave (redirect.h).
 *
 * The reaps that a thread is in are a chain, innermost first: `redirect_reap`, then `outer` in each. In a
 * shared reap several threads may be, so what is outside of it, and how often it is entered, is in each
 * thread's TLS; a thread is in one of these at a time.
 *
 * Fork: threads that the child does not have are in no reap any more. An entered reap therefore says in which
 * generation of the process (reap_tree.h); the forking thread's own are of the child's from the start.
 *
 * Threads: of a plain reap the one that uses it; of a shared one who holds it.
 */
#ifndef REAP_ENTER_H
#define REAP_ENTER_H

#include "region/reap_types.h"

/* Before the first reap: has the generation raised in forked children, and their thread's reaps be of it.
 * false: libc has no memory for it, and is to be asked again. Any thread; twice is as good as once. */
bool reap_enter_start(void);

/* Is a thread of this process in it? */
bool reap_is_entered(struct reap *reap);

#endif
