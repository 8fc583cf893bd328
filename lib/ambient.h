/* ambient.h: a thread's malloc that comes from a reap for a while.   (floor 5)
 *
 * Between reapEnter and reapLeave a thread's malloc goes to the reap. Nobody else is to pay for it: the first
 * reapEnter of a process empties the fast path's table of classes, so every malloc takes the slow path from
 * then on, which asks here; before that there is nothing to ask.
 *
 * Not everything that calls malloc is to be taken along: what libc and ld.so allocate for themselves (a
 * stream's buffer, a module's TLS block) outlives any request. So malloc says who has called it. Calls from
 * their text go to the heap, but for the places in it that allocate what the caller gets (strdup, getline),
 * which libreap-malloc finds out by calling these functions once.
 *
 * Threads: `ambient_reap` is the thread's own. The rest is written once.
 */
#ifndef AMBIENT_H
#define AMBIENT_H

#include "base.h"

/* Has any thread ever entered a reap? */
extern HIDDEN _Atomic bool ambient_is_on;

/* The innermost reap that this thread is in, or NULL. */
extern HIDDEN __thread void *ambient_reap;

/* What libreap-malloc does at the first reapEnter; NULL in libreap, where malloc is another's. */
extern HIDDEN void (*ambient_learn)(void);

/* Done by each reapEnter. */
void ambient_start(void);

/* Has what fn calls malloc for in libc go to the reap from now on. */
void ambient_learn_from(void (*fn)(void));

/* Is this malloc the reap's? caller is where it returns to; NULL for calls that never are. */
bool ambient_takes(const void *caller);

#endif
