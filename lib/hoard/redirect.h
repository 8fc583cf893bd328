/* SPDX-License-Identifier: Apache-2.0 */
/* redirect.h: a thread's malloc that comes from a reap for a while.
 *
 * Between reapEnter and reapLeave a thread's malloc goes to the reap. Nobody else is to pay for it: the first
 * reapEnter of a process empties the fast path's table of classes. Before, malloc asks nothing; from then on
 * it finds no class, looks it up in a second table where `redirect_reap` is NULL, and goes on as before; a
 * thread that is in a reap takes the slow path, which asks here.
 *
 * Not everything that calls malloc is to be taken along: what libc and ld.so allocate for themselves (a
 * stream's buffer, a module's TLS block, the name of a time zone) outlives any request. So malloc says who
 * has called it, and calls from their text go to the heap, all of them: libc's functions that allocate what
 * their caller gets (strdup, getline) are defined by libreap-malloc once more (libc_calls.c). libc's own
 * calls of strdup do not come to these.
 *
 * Threads: `redirect_reap` is the thread's own. The rest is written once.
 */
#ifndef REDIRECT_H
#define REDIRECT_H

#include "base/base.h"

/* The innermost reap that this thread is in, or NULL. */
extern HIDDEN __thread void *redirect_reap __attribute__((tls_model("initial-exec")));

/* Is malloc this library's? Set by libreap-malloc's constructor; in libreap it is another's. */
extern HIDDEN bool redirect_on;

/* Does this library come before a libreap-malloc, so that malloc is the other copy's? */
bool redirect_is_elsewhere(void);

/* Done by each reapEnter. */
void redirect_start(void);

/* Is this malloc the reap's, in a thread that is in one? caller is where it returns to; NULL for calls that
 * never are. */
bool redirect_takes(const void *caller);

/* Around each function of the user's that is called on the way to memory (a source's, a limit's): its thread
 * is in no reap meanwhile. A child that it forks is told of the reaps once it is in them again. */
struct redirect_pause {
    void *reap;
    unsigned forks;
};
struct redirect_pause redirect_pause(void);
void redirect_resume(struct redirect_pause pause);
extern HIDDEN unsigned redirect_forks;
extern HIDDEN void (*redirect_in_child)(void);

#endif
