/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/sizeclass.h"

#include <string.h>

struct sizeclass sizeclasses[CLASSES];
uint8_t sizeclass_by_units[CLASS_SIZE_MAX / BLOCK_UNIT + 1];
size_t sizeclass_fast_max;
uint8_t sizeclass_fast[CLASS_SMALL_MAX / BLOCK_UNIT + 1];
size_t sizeclass_second_max;
uint8_t sizeclass_second[CLASS_SMALL_MAX / BLOCK_UNIT + 1];

static uint16_t sizes[CLASSES]; /* bytes; 0: there is no such class */

_Static_assert(SUPERBLOCK - BLOCK_UNIT + 8 < 1 << 16, "numbers of blocks fit the word's 16 bits");

/* Returns the size of which a superblock holds this number of blocks, in whole cache lines, so that blocks
 * share none (false_sharing.h). But for 15 blocks it is 4368 bytes: SQLite's pages have that size, and of
 * the next class a superblock holds 14. */
static unsigned fitting(unsigned blocks)
{
    ASSERT(blocks >= 1);
    return SUPERBLOCK / blocks & ~((blocks == 15 ? BLOCK_UNIT : LINE) - 1u);
}

/* There is one more class between the sizes of six and five blocks to a superblock. Programs have buffers
 * there (gawk's of 11200 bytes). Its blocks leave an eighth of the superblock, at its end, untouched. */
enum { ONE_MORE = 5 };

enum { STEPS = 8 /* classes to a doubling */ };

/* From 1 to 2 KiB. The first one is 1 KiB and a header of up to 16 bytes (SQLite's texts grow to 1032 bytes).
 * The others are at most an eighth apart, in whole cache lines. */
static const uint16_t above_1_kib[STEPS] = {1040, 1152, 1280, 1408, 1536, 1728, 1920, 2048};

/* Small classes: eight to a doubling, at least a unit apart, and two units above 128 bytes. Above 2 KiB: the
 * sizes of which a superblock holds a number of blocks, but not sizes nearer to each other than an eighth. */
static unsigned fill_sizes(void)
{
    unsigned c = 0, size = 0, doubling = BLOCK_UNIT;
    while (size < KIB) {
        if (size >= 2 * doubling) doubling *= 2;
        unsigned least = size < 8 * BLOCK_UNIT ? BLOCK_UNIT : 2 * BLOCK_UNIT;
        size += doubling / STEPS > least ? doubling / STEPS : least;
        sizes[++c] = (uint16_t)size;
    }
    for (unsigned i = 0; i < STEPS; i++) sizes[++c] = above_1_kib[i];
    size = sizes[c];
    for (unsigned blocks = SUPERBLOCK / size - 1; blocks >= 2; blocks--) {
        if (blocks > 2 && fitting(blocks - 1) * STEPS <= size * (STEPS + 1)) continue;
        if (blocks == ONE_MORE)
            sizes[++c] = (uint16_t)((SUPERBLOCK - SUPERBLOCK / 8) / blocks & ~(LINE - 1u));
        size = fitting(blocks);
        sizes[++c] = (uint16_t)size;
    }
    ASSERT(c < CLASSES && sizes[c] == CLASS_SIZE_MAX);
    return c;
}

static void set_class(unsigned c)
{
    if (sizes[c] == 0) return;
    uint32_t size = sizes[c], capacity = SUPERBLOCK / size;
    ASSERT(size % BLOCK_UNIT == 0 && size <= CLASS_SIZE_MAX && capacity >= 2);
    sizeclasses[c] = (struct sizeclass){
        .size = size,
        .capacity = capacity,
        .carve_step = ((uint64_t)size << 32) - (1u << 16),
        .carve_run = size < CARVE_RUN ? (CARVE_RUN / size - 1) * size : 0,
        .carve_limit = (capacity - 1) * size + 8,
        .inverse = UINT32_MAX / size + 1,
        .capacity_inverse = UINT32_MAX / capacity + 1,
    };
}

void sizeclass_init(void)
{
    unsigned last = fill_sizes();
    assert(last < CLASS_CHUNK);
    for (unsigned c = last + 1; c < CLASS_CHUNK; c++) sizes[c] = 0;
    sizes[CLASS_CHUNK] = KIB;
    for (unsigned i = 1; i < CLASSES - CLASS_CHUNK; i++) sizes[CLASS_CHUNK + i] = (uint16_t)(4 * KIB << i);
    for (unsigned c = 1; c < CLASSES; c++) set_class(c);
    for (unsigned i = 0, c = 1; i <= CLASS_SIZE_MAX / BLOCK_UNIT; i++) {
        while (i * BLOCK_UNIT > sizes[c]) c++;
        ASSERT(c < CLASS_CHUNK && i * BLOCK_UNIT <= sizes[c]);
        sizeclass_by_units[i] = (uint8_t)c;
    }
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
    if (size > CLASS_SIZE_MAX || alignment > CLASS_SIZE_MAX) return 0;
    for (unsigned c = sizeclass_of(size); c < CLASS_CHUNK; c++)
        if (sizes[c] != 0 && sizes[c] % alignment == 0) return c;
    return 0;
}
