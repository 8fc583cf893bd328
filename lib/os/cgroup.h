/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h: what the control groups of this process leave it of memory and processors.
 *
 * Version 1 and version 2 are both read, each from the process's own group up to the root of the mount: the
 * least counts. In a container without a namespace of its own the path of the group does not exist within the
 * mount, whose root is the group then. It is a hint for policy: what cannot be read is no limit.
 *
 * Threads: any. Files are read with open and read; nothing is allocated, and errno is kept.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "base/base.h"

struct cgroup {
    size_t memory; /* bytes that all processes of the group may have; SIZE_MAX: no limit */
    unsigned cpus; /* how many processors' time, rounded up; UINT_MAX: no limit */
};

/* Reads below root, which is "" but in tests. */
void cgroup_read(const char *root, struct cgroup *group);

/* This process's, read at the first call. */
struct cgroup cgroup_mine(void);

#endif
