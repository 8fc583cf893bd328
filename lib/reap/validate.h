/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h: do a reap's equations hold?
 *
 * Checks the invariants that reap_chunk.h and reap_free.h state, by walking all of a reap. For tests, for the
 * debugger, and for the assertions of a debug build: in others nothing in the library calls it.
 *
 * Threads: the reap's own.
 */
#ifndef VALIDATE_H
#define VALIDATE_H

#include "region/reap_chunk.h"

/* True, or false with *why (which may be NULL) set to the equation that does not hold. */
bool reap_is_valid(const struct reap *reap, const char **why);

/* The same, but for what other threads may change meanwhile: its children, and limits. Between two calls.
 * False after a line on standard error with the equation. Debug builds only. */
bool reap_is_sound(const struct reap *reap);

/* Where a call begins that is not the fastest. */
#define ASSERT_SOUND(reap) ASSERT_WALK(256 + (reap)->held / 64, reap_is_sound(reap))

#endif
