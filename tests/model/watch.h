/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h: the atomic instructions and the locks that the library takes, counted.
 *
 * The library is compiled once more for the tests that count, with the compiler's instrumentation for
 * ThreadSanitizer but without its runtime: each atomic access, plain or hidden in an assignment to an
 * _Atomic, becomes a call of a function that watch.c defines, which counts it and does it. So nothing in lib/
 * knows of being counted, and nothing can be forgotten. (Sections are assembly, and have none.)
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdint.h>

struct watched {
    uint64_t atomics;      /* read-modify-writes and sequentially consistent stores; a lock taken is two */
    uint64_t locks;        /* taken */
    uint64_t global_locks; /* of those, the global heap's */
};
extern struct watched watched;

/* Finds out where the global heap's lock is. Once, before anything is counted. */
void watch_start(void);

#endif
