/* SPDX-License-Identifier: Apache-2.0 */
/* kept_chunks.h: a quarantine for chunks that reaps have given back, under Valgrind and AddressSanitizer.
 *
 * A program must not touch the objects of a reap that was destroyed or cleared. The backend would give the
 * chunks to the next reap at once, and then the sanitizer (sanitizer.h) could not tell such a use. So the
 * chunks wait here, hidden, but for the words by which calls see that a handle, or an object, is dead.
 *
 * Up to 64 chunks wait, of at most 4 MiB each and 32 MiB in all. When another comes, the oldest goes. User
 * memory is not kept.
 *
 * Threads: any. There is no lock, so a fork finds the chunks whole.
 */
#ifndef KEPT_CHUNKS_H
#define KEPT_CHUNKS_H

#include "region/reap_types.h"

/* True if a sanitizer runs. reap_instrument_start sets it. */
extern HIDDEN bool kept_chunks_on;

/* Keeps a chunk of the backend, or gives it back when it is too big. */
void kept_chunks_add(struct reap_chunk *chunk);

#endif
