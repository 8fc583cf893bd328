/* SPDX-License-Identifier: Apache-2.0 */
/* purge_thread.h: a thread that gives unused memory back, with the option purge_thread=1.
 *
 * Without it the next slow path after purge_ms gives unused memory back, so a program that becomes idle keeps
 * what it had. The thread sleeps while no memory is unused. It blocks all signals, so that a process's
 * signals still go to the program's threads, and it never allocates.
 *
 * A child of fork has no such thread until its first slow allocation: most children exec.
 */
#ifndef PURGE_THREAD_H
#define PURGE_THREAD_H

#include "base/base.h"

/* The options ask for the thread and this process has none; or a slow path has to register the fork
 * handlers. */
extern HIDDEN _Atomic bool purge_thread_is_due;

/* Starts the thread, if it is due. Allocates; the caller may hold no lock. */
void purge_thread_start(void);

#endif
