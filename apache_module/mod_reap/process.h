/* SPDX-License-Identifier: Apache-2.0 */
/* process: what the OS says of a process. Bytes; below 0 where it says nothing. */
#ifndef MOD_REAP_PROCESS_H
#define MOD_REAP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool process_is_gone(pid_t pid);

/* The resident memory, which any process may know of any other, at little cost. It allocates nothing. */
int64_t process_resident(pid_t pid);
int64_t process_own_peak(void); /* the most that this process was resident with */

/* The resident memory with shared pages divided. The kernel walks all pages for it, and the process waits for
 * its map meanwhile. Of another process only root may know it, when httpd was started by root. */
int64_t process_proportional(pid_t pid);

/* The CPU time of this thread so far, in microseconds. */
long process_thread_cpu(void);

#endif
