/* SPDX-License-Identifier: Apache-2.0 */
/* service.h: threads of the library's own.
 *
 * A service is a thread that the options ask for, or a call. It blocks all signals, so that a process's
 * signals still go to the program's threads. A slow path starts it. A child of fork has no such thread until
 * its first slow path, since most children exec; or the service starts with the child.
 *
 * Layers above register theirs in constructors, before or after the options are read.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "base/base.h"

struct service {
    const char *name; /* of the thread: at most 15 characters */
    size_t stack;     /* bytes; 0: as any thread has that the program makes, whose functions it runs */
    void *(*run)(void *);
    bool (*is_wanted)(void);       /* shall a process that has no such thread get one? */
    void (*in_forked_child)(void); /* or NULL. It must not allocate */
    bool starts_with_child; /* of fork */
    _Atomic bool is_registered, is_due;
    struct service *next;
};

/* A service is due; or a slow path has to register the fork handlers. */
extern HIDDEN _Atomic bool service_is_due;

/* Threads: any. It allocates nothing. A second time it does nothing. */
void service_register(struct service *service);

/* From now on services may start: libc is up. */
void service_begin(void);

/* A service that is wanted from now on is due: the next slow path starts it. */
void service_ask(struct service *service);

/* Starts the services that are due, with a line for one that cannot start. Allocates; the caller may hold no
 * lock. */
void service_start_due(void);

/* Starts the thread of a service. 0, or an error number. Allocates, as above. */
int service_start(struct service *service);

/* In the child of a fork. */
void service_fork_child(void);

#endif
