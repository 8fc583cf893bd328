/* SPDX-License-Identifier: Apache-2.0 */
/* hoard.h: a per-CPU superblock allocator with bounded blowup.
 *
 * The algorithm is Hoard's (Berger, McKinley, Blumofe, Wilson, ASPLOS 2000, section 3): one heap
 * per CPU and a global heap, memory moved between them a superblock at a time so that each heap
 * keeps at most a constant fraction of its memory unused. These calls never touch malloc; link
 * libreap-malloc, or preload it, to have malloc itself come from here.
 *
 * Units are bytes. Every call may be made from any thread, and after fork in the child. None is
 * safe in a signal handler. Exhaustion is an answer: NULL with errno ENOMEM. Misuse (freeing
 * twice, freeing what was never allocated here) ends the program with one line on standard error.
 */
#ifndef HOARD_H
#define HOARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden; what stands here is what leaves it. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#if defined(__GNUC__)
#define HOARD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define HOARD_ATTRIBUTE(...)
#endif

/* Gives back a block. NULL is allowed. errno is kept. */
void hoard_free(void *block);

/* A block of at least size bytes, aligned to 16. Size 0 gives a unique pointer.
 * Errors: NULL and ENOMEM when there is no memory or size exceeds PTRDIFF_MAX. */
void *hoard_malloc(size_t size) HOARD_ATTRIBUTE(malloc, alloc_size(1));

/* The same for n objects of size bytes, zeroed; n * size that overflows is ENOMEM. */
void *hoard_calloc(size_t n, size_t size) HOARD_ATTRIBUTE(malloc, alloc_size(1, 2));

/* Resizes a block, moving it if it must; NULL allocates, and size 0 leaves a block of size 0.
 * On failure the block stays as it was. */
void *hoard_realloc(void *block, size_t size) HOARD_ATTRIBUTE(alloc_size(2));

/* A block aligned to a power of two; another alignment is NULL and EINVAL. */
void *hoard_aligned_alloc(size_t alignment, size_t size)
    HOARD_ATTRIBUTE(malloc, alloc_align(1), alloc_size(2));

/* POSIX's form: 0, EINVAL (not a power of two, not a multiple of sizeof(void *), or block NULL) or ENOMEM. */
int hoard_posix_memalign(void **block, size_t alignment, size_t size);

/* The bytes that may be used in a block, constant for its life; 0 for NULL. */
size_t hoard_usable_size(const void *block);

/* Returns unused memory to the OS, of every heap; keep is the number of bytes that may stay.
 * 1 when any went back, else 0 (as malloc_trim). */
int hoard_trim(size_t keep);

struct hoard_stats {
    size_t live_bytes;         /* in blocks handed out, each at its usable size; chunks of reaps too */
    size_t held_bytes;         /* mapped from the OS for blocks and not purged */
    size_t peak_held_bytes;    /* the most that held_bytes has been */
    size_t large_bytes;        /* the part of live_bytes in spans of their own */
    size_t heaps;              /* heaps in use, the global heap apart */
    size_t superblocks;        /* on those heaps */
    size_t global_superblocks; /* on the global heap */
    uint64_t slow_mallocs;     /* allocations for which the active superblock had no block */
    uint64_t slow_frees;       /* frees that left it, the remote ones included */
    uint64_t remote_frees;     /* frees of another heap's blocks */
    uint64_t transfers;        /* superblocks moved between a heap and the global heap */
    const char *path;          /* "rseq cid", "rseq cpu" or "locked" */
};

/* Fills in stats; approximate while other threads allocate. 0, or -1 and EINVAL for NULL. */
int hoard_stats(struct hoard_stats *stats);

/* Writes what hoard_stats tells, the options in force, and why this path runs. */
void hoard_report(FILE *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
