/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h: how long single calls took, as a histogram.
 *
 *     uint64_t start = tick();
 *     call();
 *     calls_add(&calls, start);
 *
 * A histogram is one thread's; calls_sum adds them up when threads have ended. Times are in ticks, of the
 * processor's counter where there is one that costs little.
 */
#ifndef CALLS_H
#define CALLS_H

#include "measure.h"

static inline uint64_t tick(void)
{
#if defined __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return measure_now();
#endif
}

/* Ticks by sixteenths of powers of two; SUB linear ones first. */
enum { SUB_BITS = 4, SUB = 1 << SUB_BITS, BUCKETS = (64 - SUB_BITS + 1) << SUB_BITS };

struct calls {
    uint64_t worst, numbers[BUCKETS];
};

static inline int bucket_of(uint64_t ticks)
{
    if (ticks < SUB) return (int)ticks;
    int shift = 63 - SUB_BITS - __builtin_clzll(ticks);
    return ((shift + 1) << SUB_BITS) + (int)((ticks >> shift) & (SUB - 1));
}

static inline void calls_add(struct calls *calls, uint64_t start)
{
    uint64_t end = tick(), ticks = end > start ? end - start : 0;
    calls->numbers[bucket_of(ticks)]++;
    if (ticks > calls->worst) calls->worst = ticks;
}

void calls_sum(struct calls *sum, const struct calls *calls);

/* The median, the 99.9th percentile and the worst in nanoseconds, and the number of those beyond 10 ms. */
void calls_print(const char *name, const struct calls *calls, double ns_a_tick);

#endif
