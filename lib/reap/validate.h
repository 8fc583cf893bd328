/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h: do a reap's equations hold?
 *
 * Checks the invariants that reap_chunk.h and reap_free.h state, by walking all of a reap. For
 * tests and for the debugger: nothing in the library calls it.
 *
 * Threads: the reap's own.
 */
#ifndef VALIDATE_H
#define VALIDATE_H

#include "region/reap_chunk.h"

/* True, or false with *why (which may be NULL) set to the equation that does not hold. */
bool reap_is_valid(const struct reap *reap, const char **why);

#endif
