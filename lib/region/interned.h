/* SPDX-License-Identifier: Apache-2.0 */
/* interned.h: names that many reaps have, once in the process.
 *
 * A server gives each request's reap the same name. So a name that comes again is kept here, and the reaps
 * point to it: nothing is copied, and the reap has its chunk to itself.
 *
 *     cache (by the text's address) ──┐
 *     table (by the text's hash) ─────┴──> store: | struct reap_name | struct reap_name | ... | unused |
 *
 * A name stays here until the process ends. There is room for some two hundred short names. A name is taken
 * in when two reaps in turn have been given it: so names that are made up for one reap each stay out.
 *
 * Threads: any thread, at any time; no locks, also in a signal handler and in the child of a fork.
 */
#ifndef INTERNED_H
#define INTERNED_H

#include "region/reap_types.h"

/* The kept name with this text; NULL: it is not kept. */
struct reap_name *interned_find(const char *text);

/* Is this a kept name? Any address may be asked for. */
bool interned_is(const struct reap_name *name);

#endif
