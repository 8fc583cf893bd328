/* SPDX-License-Identifier: Apache-2.0 */
/* redirect.h: a thread's malloc comes from a reap for a while.
 *
 * Between reapEnter and reapLeave a thread's malloc goes to the reap. A program that enters no reap pays
 * nothing for it: the first reapEnter of a process empties the fast path's table of classes, and before that
 * malloc tests nothing. From then on malloc finds no class there, and uses a second table where
 * `redirect_reap` is NULL. A thread that has entered a reap takes the slow path, which asks redirect_takes.
 *
 * Some calls of malloc must not go to the reap: memory that libc and ld.so allocate for themselves (a
 * stream's buffer, a module's TLS block, the name of a time zone) outlives any request. So malloc passes its
 * return address on, and all calls from the text of libc and ld.so go to the heap. libreap-malloc defines
 * libc's functions that allocate for their caller (strdup, getline) once more (libc_calls.c). libc's own
 * calls of strdup do not reach these.
 *
 * Threads: `redirect_reap` is the thread's own. All else is written once.
 */
#ifndef REDIRECT_H
#define REDIRECT_H

#include "base/base.h"

/* The innermost reap that this thread has entered, or NULL. */
extern HIDDEN __thread void *redirect_reap __attribute__((tls_model("initial-exec")));

/* True if malloc is this library's: libreap-malloc's constructor sets it. With libreap alone, malloc is
 * another library's, and with a program's own malloc that program's. */
extern HIDDEN bool redirect_on;

/* Returns true if this library comes before a libreap-malloc, so that malloc is that copy's. */
bool redirect_is_elsewhere(void);

/* Each reapEnter calls it. */
void redirect_start(void);

/* Returns true if this malloc comes from a reap that the thread has entered. caller is its return address;
 * NULL for calls that never do. */
bool redirect_is_programs(const void *caller);
static inline bool redirect_takes(const void *caller)
{
    return UNLIKELY(redirect_reap != NULL) && redirect_is_programs(caller);
}

/* Of the process: the handler of forks raises it in each child. */
extern HIDDEN unsigned process_generation;

/* These two calls enclose each function of a chunk source: its thread is in no reap meanwhile. If the
 * function forks, the child's thread takes its reaps along once it is in them again. */
struct redirect_pause {
    void *reap;
    unsigned generation;
};
struct redirect_pause redirect_pause(void);
void redirect_resume(struct redirect_pause pause);

#endif
