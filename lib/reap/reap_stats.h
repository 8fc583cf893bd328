/* SPDX-License-Identifier: Apache-2.0 */
/* reap_stats.h: statistics of reaps, and surveys (reap_survey.c). */
#ifndef REAP_STATS_H
#define REAP_STATS_H

#include "reap.h"
#include "region/reap_types.h"

/* Fills in the statistics without the children. Of a reap that other threads may use all chunks must be
 * frozen, and the reap must stay: it is in a locked list, or the caller's. */
void reap_stats_of(const struct reap *reap, struct reap_stats *stats);

/* If the options say so, arranges that the program's exit lists each reap that was never destroyed. */
void reap_survey_start(void);

#endif
