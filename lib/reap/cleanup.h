/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup.h: functions that a reap calls when it ends.
 *
 * They are a stack of records, in the reap's own memory but not among its objects. The reap takes a record
 * off before it calls the function: so a function may register and cancel others, and none is called twice.
 *
 * Threads: the reap's own.
 */
#ifndef CLEANUP_H
#define CLEANUP_H

#include "region/reap_chunk.h"

struct reap_cleanup {
    struct reap_cleanup *next;
    void (*fn)(void *arg);
    void *arg;
    unsigned depth; /* marks that were open when it was registered, and still are */
};

/* Registers fn with arg. False: no memory (ENOMEM). */
bool reap_cleanup_add(struct reap *reap, void (*fn)(void *arg), void *arg);

/* Takes back the latest registration of fn with arg. False: there is none. */
bool reap_cleanup_cancel(struct reap *reap, void (*fn)(void *arg), void *arg);

/* Calls the latest function that was registered at this depth of marks or deeper. False: there is none. */
bool reap_cleanup_run_latest(struct reap *reap, unsigned depth);

#endif
