/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h: what the benchmark programs share: clocks, a generator of numbers, the result lines.
 *
 * A program prints a line, "NANOSECONDS OPERATIONS", and the driver divides; then, as it may be, lines
 * "NAME=NUMBER". What is timed is the work alone, not the start of the process, and the work is fixed, so
 * that all do the same.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t measure_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t measure_now(void) { return measure_clock(CLOCK_MONOTONIC); }

/* What all threads used, those that have ended too. */
static inline uint64_t measure_cpu(void) { return measure_clock(CLOCK_PROCESS_CPUTIME_ID); }

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

static inline void measure_print_named(const char *name, long long number)
{
    printf("%s=%lld\n", name, number);
}

/* The benchmark cannot go on: no result is better than a wrong one. */
static inline void measure_need(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "benchmark: %s\n", what);
    exit(1);
}

/* A table of zeros, not from the malloc that is measured, its pages touched. */
static inline void *measure_table(size_t n, size_t size)
{
    void *table = mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    measure_need(table != MAP_FAILED, "no memory");
    return memset(table, 0, n * size);
}

/* Touches a block, as a program would, and keeps the compiler from taking the allocation away. */
static inline void *measure_touch(void *block)
{
    measure_need(block != NULL, "no memory");
    *(volatile char *)block = 1;
    return block;
}

/* The KiB that the process has in memory now; nothing is allocated to find out. statm would tell sooner and
 * be wrong by up to 128 KiB for each CPU. */
static inline long measure_resident(void)
{
    char text[1024];
    long kib = 0;
    int rollup = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t n = read(rollup, text, sizeof text - 1);
    measure_need(n > 0, "no /proc/self/smaps_rollup");
    close(rollup);
    text[n] = '\0';
    const char *line = strstr(text, "\nRss:");
    measure_need(line != NULL && sscanf(line, " Rss: %ld", &kib) == 1, "no Rss in /proc/self/smaps_rollup");
    return kib;
}

#endif
