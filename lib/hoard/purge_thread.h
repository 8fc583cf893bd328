/* SPDX-License-Identifier: Apache-2.0 */
/* purge_thread.h: a thread that gives unused memory back, where it is asked for: purge_thread=1.
 *
 * Without it unused memory goes back by whichever slow path comes next once purge_ms are over, so that a
 * program that falls silent keeps what it had. The thread sleeps while nothing is unused. It blocks all
 * signals, so that a process's signals still go to the program's threads, and it never allocates.
 *
 * A child of fork has none until its first slow allocation: most children exec.
 */
#ifndef PURGE_THREAD_H
#define PURGE_THREAD_H

#include "base/base.h"

/* One is asked for, and this process has none; or there is another thing that a slow path has to start. */
extern HIDDEN _Atomic bool purge_thread_is_due;

/* Starts it, if it is due. Allocates; no lock may be held. */
void purge_thread_start(void);

#endif
