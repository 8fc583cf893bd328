/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.h: what those who look for mistakes are told of objects.
 *
 * With a tool in the process (sanitizer.h), or objects apart (guarded.h), reap_instrumented is set: then each
 * object takes a slow path, and these calls are made. An object is to be touched where the program asked for
 * it: not in the rest of its last 16 bytes, until the program learns its usable size.
 *
 * Threads: the reap's own, but where noted.
 */
#ifndef INSTRUMENT_H
#define INSTRUMENT_H

#include "region/reap_chunk.h"

/* Asks who is there; before the first reap is made. */
void reap_instrument_start(void);

/* An object of size bytes begins. Any thread. */
void reap_instrument_alloc(struct reap *reap, void *object, size_t size, bool zeroed);

/* One ends that has so many bytes in all. */
void reap_instrument_free(struct reap *reap, void *object, size_t bytes);

/* All bytes of an object, so many, may be touched. Any thread. */
void reap_instrument_widen(struct reap *reap, void *object, size_t bytes);

/* After that: it has a new size, in its place. */
void reap_instrument_resize(struct reap *reap, void *object, size_t bytes, size_t size);

/* Ends the program when something was written around an object of the reap. */
void reap_instrument_check(struct reap *reap, const char *call);

#endif
