/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h: the limits of this process's control group (version 2) on memory and processors.
 *
 * The functions read each directory from the process's own group up to the root of the mount; the least limit
 * counts. In a container without a namespace of its own the path of the group does not exist within the
 * mount: there the mount's root is the group. The limits are hints for policy: without a readable file there
 * is no limit.
 *
 * Threads: any. The functions read files by system calls only, allocate nothing, and keep errno.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "base/base.h"

struct cgroup {
    size_t memory; /* bytes at which the kernel kills one of the group (max) or slows all (high); SIZE_MAX:
                      none */
    unsigned cpus; /* processors whose full time the group may use, rounded up; UINT_MAX: no limit */
};

/* Reads the files below root, which is "" except in tests. */
void cgroup_read(const char *root, struct cgroup *group);

/* Returns the limits of this process, as read at the first call. */
struct cgroup cgroup_mine(void);

#endif
