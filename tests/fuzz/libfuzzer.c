/* SPDX-License-Identifier: Apache-2.0 */
/* libfuzzer.c: programs by libFuzzer, which looks for those that reach new code. The first eight bytes choose
 * how many reaps and slots there are, the others are records. */
#include "fuzz_ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long operations;

static void tell_operations(void) { fprintf(stderr, "operations: %lu\n", operations); }

enum { HEADER = 8, RECORDS = 4000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct record records[RECORDS];
    if (!operations) atexit(tell_operations);
    if (size < HEADER + sizeof records[0]) return 0;
    size_t count = (size - HEADER) / sizeof records[0];
    if (count > RECORDS) count = RECORDS;
    operations += count;
    memcpy(records, data + HEADER, count * sizeof records[0]);
    struct program program = {.threads = 1,
                              .reaps = (uint8_t)(1 + data[0] % REAPS),
                              .slots = (uint16_t)(16 + data[1] % 16 * 255),
                              .count = (uint32_t)count,
                              .records = records};
    fuzz_libfuzzer = true;
    fuzz_all = data[2] % 64 == 0;
    run_program(&program);
    return 0;
}
