/* SPDX-License-Identifier: Apache-2.0 */
/* kept_chunks.h: chunks that were given back, for those who look for mistakes.
 *
 * With a tool in the process (sanitizer.h) what was in a reap that is no more, or was cleared, must not be
 * touched. So its chunks do not go back to the backend at once, which would give them to the next reap: they
 * wait, hidden but for what calls look at to see that a handle, or an object, is dead.
 *
 * Of 64 chunks, 4 MiB each and 32 MiB in all, the oldest goes when another comes. The user's memory is not
 * kept.
 *
 * Threads: any. Without a lock, so a fork finds them whole.
 */
#ifndef KEPT_CHUNKS_H
#define KEPT_CHUNKS_H

#include "region/reap_types.h"

/* Is there such a tool? Set by reap_instrument_start. */
extern HIDDEN bool kept_chunks_on;

/* Keeps a chunk of the backend's, or gives it back. */
void kept_chunks_add(struct reap_chunk *chunk);

#endif
