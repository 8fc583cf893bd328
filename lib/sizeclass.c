#include "sizeclass.h"

#include <string.h>

struct sizeclass sizeclasses[CLASSES_MAX];
uint8_t sizeclass_small[CLASS_SMALL_MAX / BLOCK_UNIT + 1];
uint8_t sizeclass_medium[CLASS_SIZE_MAX / 128 + 1];
uint8_t sizeclass_fast[CLASS_SMALL_MAX / BLOCK_UNIT + 1];

static const uint16_t sizes[CLASSES] = {
    0,    16,   32,   48,   64,   80,   96,    112,   128,   160,   192,   224,  256,   320,
    384,  448,  512,  640,  768,  896,  1024,  1280,  1536,  1792,  2048,  2560, 3072,  3584,
    4096, 5120, 6144, 7168, 8192, 9344, 10880, 13056, 16384, 21760, 32768, 8192, 16384, 32768};

_Static_assert(CLASSES < CLASSES_MAX, "a heap's row has 63 slots, and its outbox");
_Static_assert(SUPERBLOCK - BLOCK_UNIT + 8 < 1 << 16, "numbers of blocks fit the word's 16 bits");

static void set_class(unsigned c)
{
    uint32_t size = sizes[c], capacity = SUPERBLOCK / size;
    sizeclasses[c] = (struct sizeclass){
        .size = size,
        .capacity = capacity,
        .carve_step = ((uint64_t)size << 32) - (1u << 16),
        .carve_run = size < CARVE_RUN ? (CARVE_RUN / size - 1) * size : 0,
        .carve_limit = (capacity - 1) * size + 8,
        .inverse = UINT32_MAX / size + 1,
    };
}

void sizeclass_init(void)
{
    for (unsigned c = 1; c < CLASSES; c++) set_class(c);
    for (unsigned i = 0, c = 1; i <= CLASS_SMALL_MAX / BLOCK_UNIT; i++) {
        if (i * BLOCK_UNIT > sizes[c]) c++;
        sizeclass_small[i] = (uint8_t)c;
    }
    for (unsigned i = 0, c = 1; i <= CLASS_SIZE_MAX / 128; i++) {
        while (i * 128 > sizes[c]) c++;
        sizeclass_medium[i] = (uint8_t)c;
    }
}

void sizeclass_open_fast(void) { memcpy(sizeclass_fast, sizeclass_small, sizeof sizeclass_fast); }

unsigned sizeclass_aligned(size_t alignment, size_t size)
{
    if (size > CLASS_SIZE_MAX || alignment > CLASS_SIZE_MAX) return 0;
    for (unsigned c = sizeclass_of(size); c < CLASS_CHUNK; c++)
        if (sizes[c] % alignment == 0) return c;
    return 0;
}
