/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/sizeclass.h"

#include <string.h>

SPARSE_ONCE struct sizeclass sizeclasses[CLASSES];
SPARSE_ONCE uint32_t sizeclass_wide_inverse[CLASS_CHUNK - CLASS_WIDE];
SPARSE_ONCE uint8_t sizeclass_by_units[CLASS_WIDE_SIZE / BLOCK_UNIT + 1];
SPARSE_ONCE uint8_t sizeclass_by_lines[CLASS_SIZE_MAX / LINE + 1];
size_t sizeclass_fast_max;
uint8_t sizeclass_fast[CLASS_SMALL_MAX / BLOCK_UNIT + 1];
size_t sizeclass_second_max;
uint8_t sizeclass_second[CLASS_SMALL_MAX / BLOCK_UNIT + 1];

enum { STEPS = 8 /* classes to a doubling */, SMALL_STEPS = 28 /* classes up to 1 KiB */ };

/* From 1 to 2 KiB. The first one is 1 KiB and a header of up to 16 bytes (SQLite's texts grow to 1032 bytes).
 * The others are at most an eighth apart, in whole cache lines. */
static const uint16_t above_1_kib[] = {1040, 1152, 1280, 1408, 1536, 1728, 1920, 2048};

/* Above 2 KiB: slots and blocks of a superblock. 15 to a slot: SQLite's pages; 23 to four: gawk's buffers. */
static const struct {
    uint8_t slots, blocks;
} above_2_kib[] = {{1, 28}, {1, 24}, {1, 21}, {1, 18},  {1, 16},  {1, 15},  {2, 26}, {2, 22},
                   {2, 19}, {2, 16}, {4, 27}, {4, 23},  {4, 19},  {4, 16},  {8, 27}, {8, 23},
                   {8, 19}, {8, 16}, {8, 13}, {16, 20}, {16, 16}, {16, 12}, {16, 8}};

enum {
    ABOVE_1_KIB = sizeof above_1_kib / sizeof above_1_kib[0],
    ABOVE_2_KIB = sizeof above_2_kib / sizeof above_2_kib[0],
};

_Static_assert(SMALL_STEPS + ABOVE_1_KIB + ABOVE_2_KIB + 1 == CLASS_CHUNK, "no class is left");
_Static_assert(SUPERBLOCK - BLOCK_UNIT + 8 < 1 << 16, "numbers of blocks fit the word's 16 bits");

static void set_class(unsigned c, uint32_t size, unsigned slots)
{
    uint32_t capacity = slots * SUPERBLOCK / size, step = sizeclass_is_wide(c) ? BLOCK_UNIT : size;
    ASSERT(size % BLOCK_UNIT == 0 && size <= CLASS_SIZE_MAX && capacity >= 2);
    ASSERT(slots <= SUPERBLOCK_SLOTS && (slots == 1) == (step == size));
    sizeclasses[c] = (struct sizeclass){
        .size = size,
        .slots = (uint16_t)slots,
        .capacity = (uint16_t)capacity,
        .carve_step = ((uint64_t)step << 32) - (1u << 16),
        .carve_run = size < CARVE_RUN ? (CARVE_RUN / size - 1) * size : 0,
        .carve_limit = (capacity - 1) * step + 8,
        .inverse = UINT32_MAX / step + 1,
        .capacity_inverse = UINT32_MAX / capacity + 1,
    };
    if (slots == 1) return;
    ASSERT(size % LINE == 0);
    sizeclass_wide_inverse[c - CLASS_WIDE] = UINT32_MAX / (size / LINE) + 1;
}

/* Notes the least class for each number of units up to `most` bytes. */
static void fill_tables(uint8_t *classes, unsigned most, unsigned unit)
{
    for (unsigned i = 0, c = 1; i <= most / unit; i++) {
        while (i * unit > sizeclasses[c].size) c++;
        ASSERT(c < CLASS_CHUNK && i * unit <= sizeclasses[c].size);
        classes[i] = (uint8_t)c;
    }
}

/* Small classes: eight to a doubling, at least a unit apart, and two units above 128 bytes. From 2 KiB on
 * whole cache lines, so that blocks share none (false_sharing.h); but SQLite's pages have 4368 bytes. */
void sizeclass_init(void)
{
    unsigned c = 0;
    for (uint32_t size = 0, doubling = BLOCK_UNIT; size < KIB;) {
        if (size >= 2 * doubling) doubling *= 2;
        uint32_t least = size < 8 * BLOCK_UNIT ? BLOCK_UNIT : 2 * BLOCK_UNIT;
        size += doubling / STEPS > least ? doubling / STEPS : least;
        set_class(++c, size, 1);
    }
    ASSERT(c == SMALL_STEPS);
    for (unsigned i = 0; i < ABOVE_1_KIB; i++) set_class(++c, above_1_kib[i], 1);
    for (unsigned i = 0; i < ABOVE_2_KIB; i++) {
        unsigned slots = above_2_kib[i].slots, blocks = above_2_kib[i].blocks;
        set_class(++c, slots * SUPERBLOCK / blocks & ~((blocks == 15 ? BLOCK_UNIT : LINE) - 1u), slots);
    }
    ASSERT(c == CLASS_CHUNK - 1 && sizeclasses[c].size == CLASS_SIZE_MAX);
    ASSERT(sizeclasses[CLASS_WIDE - 1].size == CLASS_WIDE_SIZE);
    set_class(CLASS_CHUNK, KIB, 1);
    for (unsigned i = 1; i < CLASSES - CLASS_CHUNK; i++) set_class(CLASS_CHUNK + i, 4 * KIB << i, 1);
    fill_tables(sizeclass_by_units, CLASS_WIDE_SIZE, BLOCK_UNIT);
    fill_tables(sizeclass_by_lines, CLASS_SIZE_MAX, LINE);
}

void sizeclass_close_fast(void)
{
    memcpy(sizeclass_second, sizeclass_fast, sizeof sizeclass_second);
    sizeclass_second_max = sizeclass_fast_max;
    memset(sizeclass_fast, 0, sizeof sizeclass_fast);
    sizeclass_fast_max = 0;
}

void sizeclass_open_fast(void)
{
    memcpy(sizeclass_fast, sizeclass_by_units, sizeof sizeclass_fast);
    sizeclass_fast_max = CLASS_SIZE_MAX;
}

unsigned sizeclass_aligned(size_t alignment, size_t size)
{
    ASSERT(is_power_of_two(alignment));
    if (size > CLASS_SIZE_MAX || alignment > SUPERBLOCK) return 0;
    for (unsigned c = sizeclass_of(size); c < CLASS_CHUNK; c++)
        if (sizeclasses[c].size % alignment == 0) return c;
    return 0;
}
