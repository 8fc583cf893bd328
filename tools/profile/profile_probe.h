/* SPDX-License-Identifier: Apache-2.0 */
/* profile_probe.h: sampled objects, as tracers see them (USDT probes). libreap-profile(7) lists them.
 *
 * Each probe has a semaphore, a word that a tracer raises while it is there. So without one a sample costs a
 * load, and its weight is not computed. Probes fire with no lock held: a tracer takes microseconds.
 */
#ifndef PROFILE_PROBE_H
#define PROFILE_PROBE_H

#include "profile_table.h"

void profile_probe_alloc(const struct profile_object *object);
void profile_probe_free(const void *object);

#endif
