/* SPDX-License-Identifier: Apache-2.0 */
/* reap_valid.h: do a reap's equations hold?   (floor 6)
 *
 * Checks the invariants that reap_chunk.h and reap_free.h state, by walking all of a reap. For
 * tests and for the debugger: nothing in the library calls it.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_VALID_H
#define REAP_VALID_H

#include "reap_chunk.h"

/* True, or false with *why (which may be NULL) set to the equation that does not hold. */
bool reap_is_valid(const struct reap *reap, const char **why);

#endif
