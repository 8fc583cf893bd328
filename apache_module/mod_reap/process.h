/* SPDX-License-Identifier: Apache-2.0 */
/* process: what the OS says of a process. Bytes; below 0 where it says nothing. */
#ifndef MOD_REAP_PROCESS_H
#define MOD_REAP_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct process_memory {
    int64_t rss, pss;
};

/* The proportional size of another process can only be had by root, when httpd was started by root. */
struct process_memory process_memory(pid_t pid);

/* The resident bytes alone, which any process may know of any other, at little cost. */
int64_t process_resident(pid_t pid);

#endif
