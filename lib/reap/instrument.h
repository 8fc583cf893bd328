/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.h: reports each object to the sanitizer, and to its guarded header.
 *
 * In an instrumented process, with a sanitizer (sanitizer.h), guarded objects (guarded.h) or libreap-trace,
 * reap_instrumented is set. Then each object takes a slow path, which makes these calls. A program may touch
 * the bytes that it asked for, but not the rest of an object's last 16 bytes, until it learns the object's
 * usable size.
 *
 * Threads: the reap's own, except where noted.
 */
#ifndef INSTRUMENT_H
#define INSTRUMENT_H

#include "base/sanitizer.h"
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

/* reap_is_pending where a tool may watch, for which the object's words may be undefined. Any thread. */
static inline bool reap_instrument_is_pending(const void *object)
{
    if (UNLIKELY(reap_instrumented)) sanitizer_use((void *)(uintptr_t)object, REAP_UNIT);
    return reap_is_pending(object);
}

/* Ends the program when bytes around a guarded object of the reap were written to. */
void reap_instrument_check(struct reap *reap, const char *call);

#endif
