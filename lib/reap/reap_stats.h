/* SPDX-License-Identifier: Apache-2.0 */
/* reap_stats.h: what is said of reaps that end, and of those that never do. */
#ifndef REAP_STATS_H
#define REAP_STATS_H

#include "region/reap_types.h"

/* Traces a reap that is cleared, or ends. */
void reap_stats_trace(const struct reap *reap, bool ends);

/* Has each of them named when the program exits, if the options say so. */
void reap_stats_start(void);

#endif
