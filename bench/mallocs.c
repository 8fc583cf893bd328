/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of one thread on malloc and free, for whichever malloc is preloaded: mallocs WORKLOAD
 * [NUMBER]. Those of more threads are in threads.c.
 *
 *     pairs        malloc and free of 64 bytes, one after the other
 *     batch        500 blocks of 64 bytes, then their frees, first in first out
 *     sizes        a thousand live blocks of 16 to 1024 bytes, or NUMBER, a random one replaced each time
 *
 * An operation is a malloc and its free. Blocks are written, and read before their free (use.h).
 */
#include "measure.h"
#include "use.h"

#include <string.h>

/* clang-format off */
enum {
    PAIRS = 20000000, PAIR_SIZE = 64,
    BATCH = 500, BATCHES = 20000,
    LIVE = 1000, LIVE_MOST = 1000000, REPLACEMENTS = 3000000
};
/* clang-format on */

static int live = LIVE;

static void *take(size_t size)
{
    void *block = malloc(size);
    measure_need(block != NULL, "no memory");
    use_write(block, size);
    return block;
}

static void give(void *block, size_t size)
{
    if (block == NULL) return;
    use_read(block, size);
    free(block);
}

static uint64_t pairs(void)
{
    for (int i = 0; i < PAIRS; i++) give(take(PAIR_SIZE), PAIR_SIZE);
    return PAIRS;
}

static uint64_t batch(void)
{
    static void *blocks[BATCH];
    for (int round = 0; round < BATCHES; round++) {
        for (int i = 0; i < BATCH; i++) blocks[i] = take(PAIR_SIZE);
        for (int i = 0; i < BATCH; i++) give(blocks[i], PAIR_SIZE);
    }
    return (uint64_t)BATCHES * BATCH;
}

/* Sizes are drawn so that small ones are commoner, as in programs. */
static size_t draw_size(uint32_t *state)
{
    uint32_t r = measure_random(state);
    return 16 + (r >> 8) % (16u << (r & 3) * 2);
}

static uint64_t sizes(void)
{
    static struct {
        void *block;
        size_t size;
    } blocks[LIVE_MOST];
    uint32_t state = 1;
    for (int i = 0; i < REPLACEMENTS; i++) {
        uint32_t slot = measure_random(&state) % (uint32_t)live;
        give(blocks[slot].block, blocks[slot].size);
        blocks[slot].size = draw_size(&state);
        blocks[slot].block = take(blocks[slot].size);
    }
    for (int i = 0; i < live; i++) give(blocks[i].block, blocks[i].size);
    return REPLACEMENTS;
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t (*run)(void);
} workloads[] = {
    {"pairs", pairs}, {"batch", batch}, {"sizes", sizes},
};
/* clang-format on */

int main(int argc, char **argv)
{
    if (argc > 2) live = atoi(argv[2]);
    measure_need(live > 0 && live <= LIVE_MOST, "1 to 1,000,000 blocks");
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            uint64_t start = measure_now(), operations = workloads[i].run();
            measure_print(measure_now() - start, operations);
            measure_print_named("sum", (long long)(use_sum % 1000000007));
            return 0;
        }
    measure_need(0, "usage: mallocs pairs|batch|sizes [NUMBER]");
}
