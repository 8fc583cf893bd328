/* SPDX-License-Identifier: Apache-2.0 */
/* redirect.h: a thread's malloc comes from a reap for a while.
 *
 * Between reapEnter and reapLeave a thread's malloc goes to the reap. Until a process enters its first reap,
 * the fast path of malloc makes no test for it (clang's malloc makes one). The first reapEnter empties the
 * fast path's table of size classes. From then on malloc finds no class in that table, and uses a second
 * table while the thread's `redirect_reap` is NULL. The malloc of a thread that has entered a reap takes the
 * slow path, and the slow path calls redirect_takes.
 *
 * Some calls of malloc must not go to the reap: memory that libc and ld.so allocate for themselves (a
 * stream's buffer, a module's TLS block, the name of a time zone) outlives any request. So malloc passes its
 * return address on, and calls from the text of libc, of ld.so and of modules that libc loads by itself go to
 * the heap. libreap-malloc defines libc's functions that allocate for their caller (strdup, getline) once
 * more (libc_calls.c). When libc itself calls strdup, it calls its own.
 *
 * Threads: `redirect_reap` belongs to its thread. libreap-malloc's constructor writes `redirect_on`, and
 * nobody writes it later; the child's fork handler writes `process_generation`. The list of texts (redirect.c)
 * only grows, by one thread at a time, and its readers take no lock.
 */
#ifndef REDIRECT_H
#define REDIRECT_H

#include "base/base.h"

/* The innermost reap that this thread has entered, or NULL. */
extern HIDDEN __thread void *redirect_reap __attribute__((tls_model("initial-exec")));

/* True if the process's malloc is this library's: libreap-malloc's constructor finds out. False with libreap
 * alone, and in a program that defines a malloc of its own. */
extern HIDDEN bool redirect_on;

/* Returns true if this copy of the library is libreap and the process has libreap-malloc besides: its malloc
 * belongs to another copy, which does not know this copy's reaps. */
bool redirect_is_elsewhere(void);

/* Each reapEnter calls it; the first call of a process closes the fast path (above). */
void redirect_start(void);

/* Returns true if a malloc with the return address `caller` is the program's, and not libc's own. It does not
 * look at `redirect_reap`. False for NULL, with which callers say that the heap must serve the call; while
 * the thread is in a call of LIBC (kernel.h); and where malloc is another library's. */
bool redirect_is_programs(const void *caller);

/* Returns true if that malloc comes from `redirect_reap`: the thread has entered a reap, and the call is the
 * program's. */
static inline bool redirect_takes(const void *caller)
{
    return UNLIKELY(redirect_reap != NULL) && redirect_is_programs(caller);
}

/* 1 at first; the fork handler adds 1 in each child. A lock word or a flag with an older generation belongs
 * to a thread that the child does not have. */
extern HIDDEN unsigned process_generation;

/* These two calls enclose each function of a chunk source: meanwhile its thread is in no reap. If the
 * function forks, the fork handler does not see the thread's reaps; redirect_resume then marks them as
 * entered in the child. */
struct redirect_pause {
    void *reap;
    unsigned generation;
};
struct redirect_pause redirect_pause(void);
void redirect_resume(struct redirect_pause pause);

#endif
