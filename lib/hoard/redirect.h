/* SPDX-License-Identifier: Apache-2.0 */
/* redirect.h: a thread's malloc comes from a reap for a while.
 *
 * Between reapEnter and reapLeave a thread's malloc goes to the reap. The first reapEnter of a process
 * empties the fast path's table of classes. From then on malloc uses a second table where the thread's
 * `redirect_reap` is NULL. In a thread that has entered a reap its slow path calls redirect_takes.
 *
 * Memory that libc and ld.so allocate for themselves (a stream's buffer, a module's TLS block) outlives any
 * request. So malloc passes its return address on, and calls from the text of libc, of ld.so and of modules
 * that libc loads by itself go to the heap. libreap-malloc defines libc's functions that allocate for their
 * caller (strdup, getline) once more (libc_calls.c).
 *
 * Threads: `redirect_reap` is the thread's own. A constructor writes `redirect_on`, a child's fork handler
 * `process_generation`. The list of texts grows, by one thread at a time, and is read without a lock.
 */
#ifndef REDIRECT_H
#define REDIRECT_H

#include "base/base.h"

/* The innermost reap that this thread has entered, or NULL: none, or the heap is entered above it. */
extern HIDDEN __thread void *redirect_reap __attribute__((tls_model("initial-exec")));

/* True if the process's malloc is this library's: libreap-malloc's constructor finds out. False with libreap
 * alone, and in a program that defines a malloc of its own. */
extern HIDDEN bool redirect_on;

/* Only libreap-malloc defines it; NULL: malloc is another's. */
extern HIDDEN const char redirect_has_malloc[] __attribute__((weak));

/* Returns true if this copy is libreap's, and a libreap-malloc with a copy of its own is in the process. */
bool redirect_is_elsewhere(void);

/* Each reapEnter calls it; the first call of a process closes the fast path (above). */
void redirect_start(void);

/* Returns true if a malloc with this return address is the program's, and not libc's own; whether the thread
 * has entered a reap does not matter. False for NULL, for a malloc within a call of LIBC (kernel.h), and
 * where malloc is another library's. redirect_takes: true if such a malloc comes from `redirect_reap`. */
bool redirect_is_programs(const void *caller);
static inline bool redirect_takes(const void *caller)
{
    return UNLIKELY(redirect_reap != NULL) && redirect_is_programs(caller);
}

/* 1 at first; the fork handler adds 1 in each child. A lock word or a flag with an older generation belongs
 * to a thread that the child does not have. */
extern HIDDEN unsigned process_generation;

/* These two calls enclose each function of a chunk source: meanwhile its thread is in no reap. If the
 * function forks, redirect_resume marks the thread's reaps as entered in the child. */
struct redirect_pause {
    void *reap;
    unsigned generation;
};
struct redirect_pause redirect_pause(void);
void redirect_resume(struct redirect_pause pause);

#endif
