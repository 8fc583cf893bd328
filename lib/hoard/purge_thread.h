/* SPDX-License-Identifier: Apache-2.0 */
/* purge_thread.h: a thread that gives unused memory back, with the option purge_thread=1, or where the
 * program asks for it. It is the only thread of the library's own.
 *
 * Without it the next slow path after purge_ms gives unused memory back, so a program that becomes idle keeps
 * what it had. The thread sleeps while no memory is unused, and it never allocates. It blocks all signals, so
 * that a process's signals still go to the program's threads.
 *
 * A slow path starts it. A child of fork has no such thread until it asks, or holds 4 MiB more than at the
 * fork: most children exec, and some enter a sandbox in which two threads could not call what they need.
 */
#ifndef PURGE_THREAD_H
#define PURGE_THREAD_H

#include "base/base.h"

/* The next slow path has to start the thread, to register the fork handlers, or to call a function
 * (init.c). */
extern HIDDEN _Atomic bool purge_thread_is_due;

/* From now on it may start: libc is up. */
void purge_thread_begin(void);

/* The program asks for the thread. Threads: any. */
void purge_thread_ask(void);

/* Starts the thread if it is due, with a line if it cannot start. Allocates; the caller may hold no lock. */
void purge_thread_start_due(void);

/* In the child of a fork, which need not have the thread that the parent asked for. */
void purge_thread_fork_child(void);

#endif
