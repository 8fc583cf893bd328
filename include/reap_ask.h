/* SPDX-License-Identifier: Apache-2.0 */
/* reap_ask.h: questions to a running process, from outside (libreap-ask).
 *
 * A thread of libreap-ask answers reap-ask(1) at a Unix socket: trees of reaps, the backend's memory, as text
 * or JSON, and questions that the program adds. The library uses only the public calls of reap.h and hoard.h.
 * A process gets the library in one of three ways, each beside libreap, libreap-malloc or libreap-apr:
 *
 *     preloaded    LD_PRELOAD="libreap-malloc.so libreap-ask.so" REAP_OPTIONS=ask=@reap.%p program
 *     linked       pkg-config --libs reap-ask, and a call of reapListen or the option
 *     by a module  httpd with mod_reap, which is linked to libreap-ask
 *
 * Threads: any thread may make any call, also after fork in the child. No call is safe in a signal handler.
 * Misuse (NULL for a required argument) ends the program with one line, as in reap.h.
 */
#ifndef REAP_ASK_H
#define REAP_ASK_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden, and exports only these declarations. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#define REAP_ASK_NONNULL __attribute__((nonnull(1)))
#else
#define REAP_ASK_NONNULL
#endif

/* Opens a Unix socket at which a thread of the library answers questions. address is a path, or "@name" for
 * an abstract socket; %p in it stands for the process id. REAP_OPTIONS=ask=ADDRESS does the same when the
 * library is loaded. Only processes with the same effective user, and root's, get answers. The process
 * listens until it ends. If the address has %p, a forked child listens by itself: at one of its first calls
 * that need memory, or at once if the option gave the address. Without %p a child does not listen. If the
 * path has a socket at which nobody listens, the new socket replaces it. Reaps that are made from now on have
 * ages (reapSetClock). Returns 0, also if the process listens at this address already; or -1 and sets errno:
 * EADDRINUSE, EEXIST (the path is a file, not a socket), EBUSY (the process listens at another address),
 * EINVAL (no name), ENAMETOOLONG (above 107 bytes), ENOMEM, or the errors of socket, bind and pthread_create.
 */
int reapListen(const char *address) REAP_ASK_NONNULL;

/* Adds a question. When a client sends the line "NAME ARGUMENTS", the library's thread calls fn, one call at
 * a time. fn writes the answer to out, and the client gets the answer once fn has returned. args has no white
 * space at its ends. fn must return, and must not wait for a thread that calls reapAnswer or exit. Its stack
 * has the size that the system gives any new thread (8 MiB as a rule). NULL for fn removes the question, and
 * waits until fn does not run. A name has 1 to 63 printable ASCII characters without spaces. A program may
 * add questions before it listens, and a forked child has them. 0; or -1 with ENOMEM, EEXIST (there is a
 * question of this name already, or the library has one), EINVAL (not a valid name), or ENOENT (no question
 * to remove). */
int reapAnswer(const char *name, void (*fn)(FILE *out, const char *args, void *arg),
               void *arg) REAP_ASK_NONNULL;

/* Writes the backend's memory as one JSON object, without a newline: the figures of hoard_stats, the size
 * classes, and the bytes that the OS gave and got back. reap-ask(1) describes the members. */
void reapBackendJson(FILE *out) REAP_ASK_NONNULL;

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
