/* SPDX-License-Identifier: Apache-2.0 */
/* remote_free.h: free() and realloc() of a reap's object, from any thread.
 *
 * Under libreap-malloc a program may pass a reap's object to free() in any thread, as libraries do with
 * memory that they did not allocate. So the call changes only two lists of the reap, by atomic pushes, and
 * the reap's next slow path empties them (reap_alloc_take_remote):
 *
 *     remote         pending objects, linked through their first words. The second word marks an object
 *                    as pending, so that a second free is recognized before the list is emptied
 *     remote_chunks  objects that realloc() had to move: each in a chunk of its own
 *
 * Threads: any, while the reap lives.
 */
#ifndef REMOTE_FREE_H
#define REMOTE_FREE_H

#include "region/reap_types.h"

/* Sets the hooks that the backend calls for blocks in chunks (reap_hooks.h). Once, before the first chunk. */
void reap_remote_start(void);

/* Checks the object of a call, and returns its usable bytes, which the program may then touch. No thread
 * may free or resize it meanwhile; all else the reap's thread may do. It takes no lock. */
size_t reap_remote_usable_checked(const struct reap_chunk *chunk, const void *object, const char *call);

/* A step of free(), for tests: tells from one word of the bitmap whether the object has more than 16 bytes;
 * false: it has not, or the word does not tell. */
bool reap_remote_is_roomy(const struct reap_chunk *chunk, const void *object);

#endif
