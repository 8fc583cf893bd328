/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

enum { LONG_NS = 10000000 };

/* The most ticks of a bucket. */
static uint64_t bucket_end(int bucket)
{
    if (bucket < SUB) return (uint64_t)bucket;
    int shift = (bucket >> SUB_BITS) - 1;
    return ((uint64_t)(SUB + bucket % SUB + 1) << shift) - 1;
}

void calls_sum(struct calls *sum, const struct calls *calls)
{
    for (int i = 0; i < BUCKETS; i++) sum->numbers[i] += calls->numbers[i];
    if (calls->worst > sum->worst) sum->worst = calls->worst;
}

static uint64_t calls_number(const struct calls *calls)
{
    uint64_t number = 0;
    for (int i = 0; i < BUCKETS; i++) number += calls->numbers[i];
    return number;
}

static uint64_t calls_permille(const struct calls *calls, int permille)
{
    uint64_t number = calls_number(calls), seen = 0;
    uint64_t wanted = number - number / 1000 * (uint64_t)(1000 - permille);
    for (int i = 0; i < BUCKETS; i++) {
        seen += calls->numbers[i];
        if (seen >= wanted) return bucket_end(i) < calls->worst ? bucket_end(i) : calls->worst;
    }
    return calls->worst;
}

static uint64_t calls_beyond(const struct calls *calls, uint64_t ticks)
{
    uint64_t number = 0;
    for (int i = bucket_of(ticks) + 1; i < BUCKETS; i++) number += calls->numbers[i];
    return number;
}

void calls_print(const char *name, const struct calls *calls, double ns_a_tick)
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
