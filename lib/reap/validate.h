/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h: checks a reap's invariants.
 *
 * The functions walk all of a reap and check the invariants that reap_types.h, quota.h and reap_shared.h
 * state. They are for tests, the debugger and the assertions of a debug build. In a release build nothing in
 * the library calls them.
 *
 * Threads: the reap's own.
 */
#ifndef VALIDATE_H
#define VALIDATE_H

#include "region/reap_chunk.h"

/* True, or false with *why (which may be NULL) set to the equation that does not hold. */
bool reap_is_valid(const struct reap *reap, const char **why);

/* Checks, between two calls, all but what other threads may change meanwhile: children, and limits. False,
 * after a line on standard error with the equation. Debug builds only. */
bool reap_is_sound(const struct reap *reap);

/* Stands at the beginning of each slow call. */
#define ASSERT_SOUND(reap) ASSERT_WALK(256 + (reap)->held / 64, reap_is_sound(reap))

#endif
