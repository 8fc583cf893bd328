/* SPDX-License-Identifier: Apache-2.0 */
/* purge_thread.h: a thread that gives unused memory back, with the option purge_thread=1, or where the
 * program asks for it. It is the only thread that the library starts.
 *
 * Without this thread the next slow path after purge_ms gives unused memory back, so a program that becomes
 * idle keeps its unused memory. The thread sleeps while no memory is unused, never allocates, and blocks all
 * signals.
 *
 * A slow path starts the thread. A child of fork has none until the child asks, or holds 4 MiB more than at
 * the fork: most children exec, and some enter a sandbox that forbids calls of a second thread.
 */
#ifndef PURGE_THREAD_H
#define PURGE_THREAD_H

#include "base/base.h"

/* Libc is up; the program asks for the thread (threads: any); this is a child of fork, which need not have
 * the thread that the parent asked for. Each returns true if the thread is due now (init.h). */
bool purge_thread_begin(void);
bool purge_thread_ask(void);
bool purge_thread_fork_child(void);

/* Returns false in a child of fork that holds too little for a thread that is due. */
bool purge_thread_is_worth(void);

/* Starts the thread, with a line if it cannot start. Allocates; the caller may hold no lock. */
void purge_thread_start(void);

#endif
