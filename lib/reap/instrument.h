/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.h: reports each object to the sanitizer, and to its guarded header.
 *
 * In an instrumented process, with a sanitizer (sanitizer.h) or guarded objects (guarded.h),
 * reap_instrumented is set. Then each object takes a slow path, which makes these calls. A program may touch
 * the bytes that it asked for, but not the rest of an object's last 16 bytes, until it learns the object's
 * usable size.
 *
 * Threads: the reap's own, except where noted.
 */
#ifndef INSTRUMENT_H
#define INSTRUMENT_H

#include "region/reap_chunk.h"

/* Finds out whether the process is instrumented; before the first reap is made. */
void reap_instrument_start(void);

/* Reports a new object of size bytes. Any thread. */
void reap_instrument_alloc(struct reap *reap, void *object, size_t size, bool zeroed);

/* Reports the free of an object that has `bytes` usable bytes. */
void reap_instrument_free(struct reap *reap, void *object, size_t bytes);

/* Reports that the program may touch all usable bytes of an object. Any thread. */
void reap_instrument_widen(struct reap *reap, void *object, size_t bytes);

/* After reap_instrument_widen: reports that the object has a new size in its place. */
void reap_instrument_resize(struct reap *reap, void *object, size_t bytes, size_t size);

/* Ends the program when bytes around a guarded object of the reap were written to. */
void reap_instrument_check(struct reap *reap, const char *call);

#endif
