/* measure.h: what the benchmark programs share: a clock, a generator of numbers, the result line.
 *
 * A program prints one line, "NANOSECONDS OPERATIONS"; the driver divides. What is timed is the
 * work alone, not the start of the process, and the work is fixed, so that all do the same.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t measure_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* xorshift: cheap beside a malloc, and the same numbers for everybody. */
static inline uint32_t measure_random(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

static inline void measure_print(uint64_t nanoseconds, uint64_t operations)
{
    printf("%llu %llu\n", (unsigned long long)nanoseconds, (unsigned long long)operations);
}

/* The benchmark cannot go on: no result is better than a wrong one. */
static inline void measure_need(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "benchmark: %s\n", what);
    exit(1);
}

/* Touches a block, as a program would, and keeps the compiler from taking the allocation away. */
static inline void *measure_touch(void *block)
{
    measure_need(block != NULL, "no memory");
    *(volatile char *)block = 1;
    return block;
}

#endif
