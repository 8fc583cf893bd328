/* SPDX-License-Identifier: Apache-2.0 */
/* reap_stats.h: statistics of reaps for the trace, and for the list of reaps that were never destroyed. */
#ifndef REAP_STATS_H
#define REAP_STATS_H

#include "region/reap_types.h"

/* Writes a line to the trace for a reap that is cleared, or ends. */
void reap_stats_trace(const struct reap *reap, bool ends);

/* If the options say so, arranges that the program's exit lists each reap that was never destroyed. */
void reap_stats_start(void);

#endif
