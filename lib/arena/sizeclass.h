/* SPDX-License-Identifier: Apache-2.0 */
/* sizeclass.h: from sizes to classes and back.
 *
 *     bytes   16 .. 128   160 .. 256   288 .. 512   576 .. 1024   1040 1152 .. 2048   2304 .. 128 KiB
 *     steps       16           32           32           64          112 to 192     by blocks in a superblock
 *
 * Classes are 16 bytes apart up to 128 bytes and 32 up to 256. Above there are eight to a doubling up to 2
 * KiB, so that a block is at most 9/8 of the requested size (ASPLOS 2000 has 1.2). One of them is 1 KiB and a
 * header. Above 2 KiB a class is the largest size of which a superblock holds a given number of blocks, in
 * whole cache lines but for one class. There are four to a doubling up to 32 KiB, and five for the two
 * doublings above.
 *
 * A superblock has one slot of 64 KiB up to 4368 bytes. The classes above are wide: a superblock has two to
 * sixteen slots, so that up to 32 KiB it holds 16 blocks at least, and not each free takes it to another
 * fullness group. A wide block has a stub (superblock.h), and its place in the word is that of the
 * stub.
 *
 * The last four classes are for chunks of reaps. Class 0 is no class: tables that are still zero lead to the
 * slow path.
 */
#ifndef SIZECLASS_H
#define SIZECLASS_H

#include "base/base.h"

/* S of the papers is a constant: free and the pagemap compute it with constant shifts and masks. */
enum {
    SUPERBLOCK_SHIFT = 16,
    SUPERBLOCK = 1 << SUPERBLOCK_SHIFT, /* bytes of a slot: the papers' S */
    SUPERBLOCK_SIZES = 5,               /* superblocks have 1, 2, 4, 8 or 16 slots */
    SUPERBLOCK_SLOTS = 1 << (SUPERBLOCK_SIZES - 1),
    BLOCK_UNIT = 16,                  /* bytes; sizes and offsets of blocks are multiples of it */
    LINE = 64,                        /* bytes of a cache line */
    CLASS_SIZE_MAX = 2 * SUPERBLOCK,  /* bytes; larger objects have spans of their own */
    CLASS_WIDE = 43,                  /* the first of the wide classes */
    CLASS_WIDE_SIZE = 4368,           /* bytes; blocks of wide classes are larger */
    CLASS_CHUNK = 60,                 /* the first of the four classes for chunks of reaps */
    CLASS_CHUNK_MAX = SUPERBLOCK / 2, /* bytes of the largest of these */
    CLASSES = 64,
    CLASS_SMALL_MAX = 1024, /* bytes; up to this size malloc has a path of its own */
    CARVE_RUN = 1024,       /* bytes to carve at once, if blocks are smaller */
};

/* The fast path's data of a class. Zero before sizeclass_init, and read-only after it. */
struct sizeclass {
    uint64_t carve_step;       /* added to a superblock's word to carve one block */
    uint32_t carve_run;        /* bytes from the first to the last block of those carved at once */
    uint32_t carve_limit;      /* the number (superblock.h) of the last block */
    uint32_t inverse;          /* n * inverse (mod 2^32) < inverse if and only if step divides n, n < 2^16 */
    uint32_t size;             /* bytes */
    uint16_t capacity;         /* blocks in a superblock */
    uint16_t slots;            /* of a superblock */
    uint32_t capacity_inverse; /* n * 8 / capacity is n * 8 * capacity_inverse / 2^32, n <= capacity */
};

extern HIDDEN struct sizeclass sizeclasses[CLASSES];

/* Of a wide class: n * this (mod 2^32) < this if and only if n cache lines are a number of blocks. */
extern HIDDEN uint32_t sizeclass_wide_inverse[CLASS_CHUNK - CLASS_WIDE];

static ALWAYS_INLINE bool sizeclass_is_wide(unsigned class)
{
    return class - CLASS_WIDE < CLASS_CHUNK - CLASS_WIDE;
}

/* Returns the bytes from one block's place to the next: the size, or those of a stub. */
static inline uint32_t sizeclass_step(const struct sizeclass *class)
{
    return (uint32_t)(class->carve_step >> 32) + 1;
}

/* The classes by sizes in units of BLOCK_UNIT, and the wide classes by sizes in cache lines. */
extern HIDDEN uint8_t sizeclass_by_units[CLASS_WIDE_SIZE / BLOCK_UNIT + 1];
extern HIDDEN uint8_t sizeclass_by_lines[CLASS_SIZE_MAX / LINE + 1];

/* The fast path's copy of that table's beginning; all class 0, which no size has, while it is closed. */
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

/* The class for a size up to CLASS_SIZE_MAX; 0 counts as 1. The second is for those above CLASS_WIDE_SIZE. */
static ALWAYS_INLINE unsigned sizeclass_of_wide(size_t size)
{
    ASSERT(size > CLASS_WIDE_SIZE && size <= CLASS_SIZE_MAX);
    return sizeclass_by_lines[(size + LINE - 1) / LINE];
}
static ALWAYS_INLINE unsigned sizeclass_of(size_t size)
{
    if (UNLIKELY(size > CLASS_WIDE_SIZE)) return sizeclass_of_wide(size);
    return sizeclass_by_units[(size + BLOCK_UNIT - 1) / BLOCK_UNIT];
}

/* Returns the class of chunks of size bytes, size <= CLASS_CHUNK_MAX. */
static inline unsigned sizeclass_of_chunk(size_t size)
{
    ASSERT(size <= CLASS_CHUNK_MAX);
    return CLASS_CHUNK + (size > KIB) + (size > 8 * KIB) + (size > 16 * KIB);
}

/* Returns a class whose blocks are aligned to alignment (a power of two) and hold size bytes, or 0. */
unsigned sizeclass_aligned(size_t alignment, size_t size);

#endif
