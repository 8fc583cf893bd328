/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h: calls to the OS that fail when a test says so.
 *
 * A test that is linked with -Wl,--wrap of each (faults_wrapped in backend.am) has all of the library's calls
 * come here first, and its own. A call that fails is not made, but for its errno it is as if the OS had
 * refused; what is refused a mapping finds no mapping, what is refused an unmapping still has one.
 *
 *     for (n = 0; ; n++) { faults_plan(...n...); ...; if (faults_injected() == 0) break; }
 *
 * Threads: any; faults_plan while no other one makes calls.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>
#include <stddef.h>

enum fault_call {
    FAULT_MMAP,
    FAULT_MUNMAP,
    FAULT_MREMAP,
    FAULT_MADVISE,
    FAULT_MEMBARRIER, /* to register */
    FAULT_FUTEX,
    FAULT_AFFINITY, /* sched_getaffinity */
    FAULT_GETCPU,
    FAULT_OPEN,
    FAULT_READ,
    FAULT_FCNTL,
    FAULT_WRITE,
    FAULT_ATFORK,
    FAULT_THREAD, /* pthread_create */
    FAULT_FENCE,  /* membarrier otherwise; in none of the masks below, since the program may end of it */
    FAULT_CALLS
};

enum {
    FAULT_ANY = (1 << FAULT_FENCE) - 1,
    /* For memory: who calls is told. Without a handler for forks there are no reaps. */
    FAULT_ANY_TOLD = 1 << FAULT_MMAP | 1 << FAULT_ATFORK,
    /* No call that asks for memory: what fails of these, nobody is told. */
    FAULT_ANY_QUIET = FAULT_ANY & ~FAULT_ANY_TOLD,
};

struct fault_plan {
    unsigned calls;      /* a bit for each kind that may fail */
    unsigned long after; /* this number of calls succeeds first */
    unsigned long times; /* this number of calls fails then */
    size_t least, most;  /* of those that have a size: just these; most 0: all */
    unsigned one_in;     /* not 0: not these but one in so many, by chance */
    int error;           /* errno; 0: what the OS says most often */
};

extern const struct fault_plan faults_none;

void faults_plan(struct fault_plan plan);

/* Since the last plan: how many have failed, and how many of the kinds there were. */
unsigned long faults_injected(void);
unsigned long faults_asked(void);

/* Calls of a kind that a thread made while it had a lock of ours, since the last plan. A lock that is waited
 * for counts: of a futex it is one where another one is held besides. */
unsigned long faults_with_lock(enum fault_call call);

/* Bytes that are in memory though the OS was asked to unmap them, refused, and never heard of them again; and
 * forgets them. */
size_t faults_left_resident(void);

/* The name of a kind. */
const char *faults_name(enum fault_call call);

#endif
