/* SPDX-License-Identifier: Apache-2.0 */
/* reap_depot.h: dead reaps for whoever needs one of their size next.
 *
 * A parent has a place for one dead child of 1 KiB. Greater ones, a second one, and those of a parent that
 * ends, go to the depot of their thread: so a connection that waits holds no memory of its requests. A
 * request of a server has several children at once, which end with it, and the next request begins with none.
 * A depot keeps 8 reaps of 1 KiB, 4 of 8, 2 of 16 and one of 32, and of each size above 1 KiB the hot one,
 * which the next one finds without the lock. There is one for each list of roots. A thread stays with that of
 * the list which kept its last root, or of the heap id that it had when it first kept a child: so not each of
 * a server's forty threads has one. What does not fit goes to the next depot. A thread whose depot has none
 * looks in those that were full, and in these next ones: there another thread ends what this one creates, and
 * some of that later than the next begins.
 *
 * A program may write to a dead reap by mistake. So what is here, and how much, is not in the reaps' own
 * memory; whoever takes one makes it new (reap_region_renew), but for the hot one.
 *
 * No reap holds what is here, and to the backend it is in use. So all of it goes back with hoard_trim, before
 * a statistic of the backend, and when memory is short; a thread's depot with its reapTrim; and, from one
 * look of the purge to the next, what nobody took (reap_depot_give_idle).
 *
 * Lock: each depot's. A thread takes no other lock while it has one.
 */
#ifndef REAP_DEPOT_H
#define REAP_DEPOT_H

#include "region/reap_types.h"

/* Keeps a dead reap that is in no list, or gives it back if there is no place. */
void reap_depot_keep(struct reap *reap);

/* Takes a dead reap of the size of a step (region.h), and makes it new. NULL: there is none. */
struct reap *reap_depot_take(unsigned step);

/* Gives back all that depots and lists of roots keep; all of this thread's depot and the next one, and
 * returns the bytes. */
void reap_depot_trim(void);
size_t reap_depot_trim_own(void);

/* A look: gives back of each depot as many as were there all the time since the last look. A thread that
 * purges looks, and where there is none whoever keeps a reap, once after each purge. */
void reap_depot_give_idle(void);

/* The bytes that all depots keep. */
size_t reap_depot_bytes(void);

#endif
