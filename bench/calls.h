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

enum { LONG_NS = 10000000 };

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

/* The most ticks of a bucket. */
static inline uint64_t bucket_end(int bucket)
{
    if (bucket < SUB) return (uint64_t)bucket;
    int shift = (bucket >> SUB_BITS) - 1;
    return ((uint64_t)(SUB + bucket % SUB + 1) << shift) - 1;
}

static inline void calls_add(struct calls *calls, uint64_t start)
{
    uint64_t end = tick(), ticks = end > start ? end - start : 0;
    calls->numbers[bucket_of(ticks)]++;
    if (ticks > calls->worst) calls->worst = ticks;
}

static inline void calls_sum(struct calls *sum, const struct calls *calls)
{
    for (int i = 0; i < BUCKETS; i++) sum->numbers[i] += calls->numbers[i];
    if (calls->worst > sum->worst) sum->worst = calls->worst;
}

static inline uint64_t calls_number(const struct calls *calls)
{
    uint64_t number = 0;
    for (int i = 0; i < BUCKETS; i++) number += calls->numbers[i];
    return number;
}

static inline uint64_t calls_permille(const struct calls *calls, int permille)
{
    uint64_t number = calls_number(calls), seen = 0;
    uint64_t wanted = number - number / 1000 * (uint64_t)(1000 - permille);
    for (int i = 0; i < BUCKETS; i++) {
        seen += calls->numbers[i];
        if (seen >= wanted) return bucket_end(i) < calls->worst ? bucket_end(i) : calls->worst;
    }
    return calls->worst;
}

static inline uint64_t calls_beyond(const struct calls *calls, uint64_t ticks)
{
    uint64_t number = 0;
    for (int i = bucket_of(ticks) + 1; i < BUCKETS; i++) number += calls->numbers[i];
    return number;
}

static inline void print_calls(const char *name, const struct calls *calls, double ns_a_tick)
{
    char text[64];
    const struct {
        const char *figure;
        double value;
    } figures[] = {{"median", ns_a_tick * (double)calls_permille(calls, 500)},
                   {"999", ns_a_tick * (double)calls_permille(calls, 999)},
                   {"worst", ns_a_tick * (double)calls->worst},
                   {"long", (double)calls_beyond(calls, (uint64_t)(LONG_NS / ns_a_tick))}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        snprintf(text, sizeof text, "%s_%s", name, figures[i].figure);
        measure_print_named(text, (long long)figures[i].value);
    }
}

#endif
