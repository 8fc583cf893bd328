/* SPDX-License-Identifier: Apache-2.0 */
/* reap_enter.h: the reaps that threads have entered, between reapEnter and reapLeave (redirect.h).
 *
 * The entered reaps of a thread are a chain, innermost first: `redirect_reap`, then `outer` in each. Several
 * threads may have entered one shared reap. So for a shared reap the outer reap, and the number of entries,
 * lie in each thread's TLS; a thread has entered at most one shared reap at a time.
 *
 * reapEnter(NULL) enters the heap: `redirect_reap` is NULL until the thread leaves it. The reap below the
 * heap counts how often it is entered, and `outer` of a reap above it has a bit for it. So a thread may enter
 * a reap or the heap 65,535 times in a row.
 *
 * Fork: a thread that the child does not have has entered no reap there. So an entered reap has the
 * generation of its process (reap_tree.h), and older ones do not count. The reaps of the forking thread get
 * the child's generation at the fork.
 *
 * Threads: for a plain reap the thread that uses it, for a shared one the thread that holds it.
 */
#ifndef REAP_ENTER_H
#define REAP_ENTER_H

#include "region/reap_types.h"

/* In the child of a fork: gives the reaps that this thread has entered the child's generation. */
void reap_enter_take_along(void);

/* Returns true if a thread of this process has entered the reap. */
bool reap_is_entered(struct reap *reap);

#endif
