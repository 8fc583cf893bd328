/* SPDX-License-Identifier: Apache-2.0 */
/* apr_expect.h: what programs on APR's pools share: the first thing that does not hold ends them with a line.
 */
#ifndef APR_EXPECT_H
#define APR_EXPECT_H

#include <apr_general.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void expect(int held, const char *what)
{
    if (held) return;
    printf("wrong: %s\n", what);
    exit(1);
}

#ifdef APR_REAP_H
#include "reap.h"

static inline struct reap_stats stats_of(apr_pool_t *pool)
{
    struct reap_stats stats;
    expect(reapStats(apr_pool_reap(pool), &stats) == 0, "reapStats");
    return stats;
}
#endif

#endif
