/* ambient.h: a thread's malloc that comes from a reap for a while.   (floor 5)
 *
 * Between reapEnter and reapLeave a thread's malloc goes to the reap. Nobody else is to pay for it: the first
 * reapEnter of a process empties the fast path's table of classes. Before, malloc asks nothing; from then on
 * it finds no class, looks it up in a second table where `ambient_reap` is NULL, and goes on as before; a
 * thread that is in a reap takes the slow path, which asks here.
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

/* The innermost reap that this thread is in, or NULL. */
extern HIDDEN __thread void *ambient_reap __attribute__((tls_model("initial-exec")));

/* What libreap-malloc does at the first reapEnter; NULL in libreap, where malloc is another's. */
extern HIDDEN void (*ambient_learn)(void);

/* Done by each reapEnter. */
void ambient_start(void);

/* Has what fn calls malloc for in libc go to the reap from now on. */
void ambient_learn_from(void (*fn)(void));

/* Is this malloc the reap's, in a thread that is in one? caller is where it returns to; NULL for calls that
 * never are. */
bool ambient_takes(const void *caller);

#endif
