/* SPDX-License-Identifier: Apache-2.0 */
/* purge_thread.h: a thread that gives unused memory back, with the option purge_thread=1, or where the
 * program asks for it.
 *
 * Without it the next slow path after purge_ms gives unused memory back, so a program that becomes idle keeps
 * what it had. The thread sleeps while no memory is unused, and it never allocates.
 */
#ifndef PURGE_THREAD_H
#define PURGE_THREAD_H

#include "hoard/service.h"

extern HIDDEN struct service purge_thread;

/* The program asks for the thread. Threads: any. */
void purge_thread_ask(void);

#endif
