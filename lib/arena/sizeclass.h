/* SPDX-License-Identifier: Apache-2.0 */
/* sizeclass.h: from sizes to classes and back.
 *
 *     bytes   16 .. 128   160 .. 256   288 .. 512   576 .. 1024   1040 1152 .. 2048   2304 .. 21824 32768
 *     steps       16           32           32           64          112 to 192     by blocks in a superblock
 *
 * Classes are 16 bytes apart up to 128 bytes and 32 up to 256. Above there are eight to a doubling, so that a
 * block is at most 9/8 of the requested size (ASPLOS 2000 has 1.2). One of them is 1 KiB and a header. Above
 * 2 KiB a class is the largest size of which a superblock holds a given number of blocks, in whole cache
 * lines but for one class. These sizes are about as far apart as smaller ones, and one more class fills a
 * wide gap. The last four classes are for chunks of reaps. Class 0 is no class: tables that are still zero
 * lead to the slow path.
 */
#ifndef SIZECLASS_H
#define SIZECLASS_H

#include "base/base.h"

/* S of the papers is a constant: free and the pagemap compute it from each address with constant shifts and
 * masks. */
enum {
    SUPERBLOCK_SHIFT = 16,
    SUPERBLOCK = 1 << SUPERBLOCK_SHIFT, /* bytes: the papers' S */
    BLOCK_UNIT = 16,                    /* bytes; the unit of offsets in a superblock */
    LINE = 64,                          /* bytes of a cache line */
    CLASS_SIZE_MAX = SUPERBLOCK / 2,    /* bytes; larger objects have spans of their own */
    CLASS_CHUNK = 60,                   /* the first of the four classes for chunks of reaps */
    CLASSES = 64,
    CLASS_SMALL_MAX = 1024, /* bytes; up to this size malloc has a path of its own */
    CARVE_RUN = 1024,       /* bytes to carve at once, if blocks are smaller */
};

/* The fast path's data of a class. Zero before sizeclass_init, and read-only after it. */
struct sizeclass {
    uint64_t carve_step;       /* added to a superblock's word to carve one block */
    uint32_t carve_run;        /* bytes from the first to the last block of those carved at once */
    uint32_t carve_limit;      /* the number (superblock.h) of the last block */
    uint32_t inverse;          /* n * inverse (mod 2^32) < inverse if and only if size divides n, n < 2^16 */
    uint32_t size;             /* bytes */
    uint32_t capacity;         /* blocks in a superblock */
    uint32_t capacity_inverse; /* n * 8 / capacity is n * 8 * capacity_inverse / 2^32, n <= capacity */
};

extern HIDDEN struct sizeclass sizeclasses[CLASSES];
extern HIDDEN uint8_t sizeclass_by_units[CLASS_SIZE_MAX / BLOCK_UNIT + 1];

/* The fast path's copy of the beginning of that table. All class 0, which no size has, until
 * sizeclass_open_fast. */
extern HIDDEN uint8_t sizeclass_fast[CLASS_SMALL_MAX / BLOCK_UNIT + 1];

/* The fast path's bound for larger sizes: CLASS_SIZE_MAX, or 0 while it is closed. */
extern HIDDEN size_t sizeclass_fast_max;

/* The values of both before they were closed, for threads that may still use them. */
extern HIDDEN uint8_t sizeclass_second[CLASS_SMALL_MAX / BLOCK_UNIT + 1];
extern HIDDEN size_t sizeclass_second_max;

/* Makes the tables, opens the fast path's, or closes them. */
void sizeclass_init(void);
void sizeclass_open_fast(void);
void sizeclass_close_fast(void);

/* Returns the class for size <= CLASS_SIZE_MAX. Size 0 is served as 1. */
static ALWAYS_INLINE unsigned sizeclass_of(size_t size)
{
    ASSERT(size <= CLASS_SIZE_MAX);
    return sizeclass_by_units[(size + BLOCK_UNIT - 1) / BLOCK_UNIT];
}

/* Returns the class of chunks of size bytes, size <= CLASS_SIZE_MAX. */
static inline unsigned sizeclass_of_chunk(size_t size)
{
    ASSERT(size <= CLASS_SIZE_MAX);
    return CLASS_CHUNK + (size > KIB) + (size > 8 * KIB) + (size > 16 * KIB);
}

/* Returns a class whose blocks are aligned to alignment (a power of two) and hold size bytes, or 0. */
unsigned sizeclass_aligned(size_t alignment, size_t size);

#endif
