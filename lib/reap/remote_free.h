/* SPDX-License-Identifier: Apache-2.0 */
/* remote_free.h: free() and realloc() of a reap's object, from any thread.
 *
 * Under libreap-malloc a program may hand a reap's object to free(), as libraries do with what
 * they did not allocate. The thread that calls need not be the one that uses the reap, so nothing
 * of the reap is touched but two lists, pushed to atomically and emptied by the reap's next slow
 * path (reap_alloc_take_remote):
 *
 *     remote         freed objects, linked through their first eight bytes; the second eight mark
 *                    them as pending, so that a second free is seen before the list is emptied
 *     remote_chunks  objects that realloc() had to move: each in a chunk of its own
 *
 * Threads: any, while the reap lives.
 */
#ifndef REMOTE_FREE_H
#define REMOTE_FREE_H

#include "region/reap_types.h"

/* Tells the backend whom to call for blocks that lie in chunks. Done once, before the first chunk. */
void reap_remote_start(void);

/* The bytes of a live object, which nobody frees or resizes meanwhile; all may be touched then. Its reap's
 * thread may do all else. */
size_t reap_remote_usable(const struct reap_chunk *chunk, const void *object);

/* What that, and free(), are made of: the units of such an object in a regular chunk, or false, when
 * something behind it is being changed; and whether it has more than 16 bytes, as far as one look tells. */
bool reap_remote_measure(const struct reap_chunk *chunk, size_t unit, size_t *units);
bool reap_remote_is_roomy(const struct reap_chunk *chunk, const void *object);

#endif
