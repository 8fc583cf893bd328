/* SPDX-License-Identifier: Apache-2.0 */
/* reap_ask.h: questions to a running process, from outside (libreap-ask).
 *
 * A thread of libreap-ask answers reap-ask(1) at a Unix socket: trees of reaps, the backend's memory, as text
 * or JSON, and questions that the program adds. The library stands on the public calls of reap.h and hoard.h.
 * A process has it in one of three ways, each beside libreap, libreap-malloc or libreap-apr:
 *
 *     preloaded    LD_PRELOAD="libreap-malloc.so libreap-ask.so" REAP_OPTIONS=ask=@reap.%p program
 *     linked       pkg-config --libs reap-ask, and a call of reapListen or the option
 *     as a part    httpd with mod_reap, which is linked to it
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
 * an abstract one; %p in it stands for the process's number. REAP_OPTIONS=ask=ADDRESS does the same when the
 * library is loaded. Only processes with this one's effective user, and root's, get answers. The process
 * listens until it ends. If the address has %p, a forked child listens by itself: at one of its first calls
 * that need memory, or at once where the option has the address; otherwise it does not listen. Where a path
 * has a socket at which nobody listens, the new one takes its place. Reaps that are made from now on have
 * ages (reapSetClock). Returns 0, also if the process listens at this address already; or -1 and sets errno:
 * EADDRINUSE, EEXIST (what is there is no socket), EBUSY (it listens at another address), EINVAL (no name),
 * ENAMETOOLONG (above 107 bytes), ENOMEM, or what socket, bind and pthread_create say. */
int reapListen(const char *address) REAP_ASK_NONNULL;

/* Adds a question. For the line "NAME ARGUMENTS" from outside the library's thread calls fn, one call at a
 * time, which writes the answer to out; the client gets it once fn has returned. args has no white space at
 * its ends. fn must return, and must not wait for a thread that calls reapAnswer or exit. Its stack has the
 * size that the system gives any new thread (8 MiB as a rule). NULL for fn takes the question away, and
 * waits until fn does not run. A name has 1 to 63 printable ASCII characters without spaces. Questions may be
 * added before the process listens, and a forked child has them. 0; or -1 with ENOMEM, EEXIST (the name is
 * taken, or the library's own), EINVAL (no such name can be), or ENOENT (nothing to take away). */
int reapAnswer(const char *name, void (*fn)(FILE *out, const char *args, void *arg),
               void *arg) REAP_ASK_NONNULL;

/* Writes the backend's memory as one JSON object, without a line's end: the figures of hoard_stats, size
 * classes, and what the OS gave and got back. reap-ask(1) has the members. */
void reapBackendJson(FILE *out) REAP_ASK_NONNULL;

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
