/* SPDX-License-Identifier: Apache-2.0 */
/* hoard.h: a per-CPU superblock allocator with bounded blowup.
 *
 * The algorithm is Hoard's (Berger, McKinley, Blumofe, Wilson, ASPLOS 2000, section 3): each CPU has a heap,
 * and there is a global heap. Memory moves between them one superblock at a time, so that each heap keeps at
 * most a constant fraction of its memory unused. These calls do not replace malloc. In a program that links
 * or preloads libreap-malloc, malloc itself is this allocator.
 *
 * Units are bytes. Any thread may make any call, also after fork in the child. No call is safe in a signal
 * handler. When there is no memory, a call returns NULL and sets errno to ENOMEM. Misuse (to free a block
 * twice, or a pointer of another allocator) ends the program with one line on standard error.
 */
#ifndef HOARD_H
#define HOARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden, and exports only these declarations. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#if defined(__GNUC__)
#define HOARD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define HOARD_ATTRIBUTE(...)
#endif

/* Frees a block. NULL is allowed. The call keeps errno. */
void hoard_free(void *block);

/* A block of at least size bytes, aligned to 16. Size 0 gives a unique pointer.
 * Errors: NULL and ENOMEM when there is no memory or size exceeds PTRDIFF_MAX. */
void *hoard_malloc(size_t size) HOARD_ATTRIBUTE(malloc, alloc_size(1));

/* A zeroed block for n objects of size bytes each, aligned to 16. If n * size overflows, NULL and ENOMEM. */
void *hoard_calloc(size_t n, size_t size) HOARD_ATTRIBUTE(malloc, alloc_size(1, 2));

/* Resizes a block, moves it if necessary, and returns its address. NULL allocates, and size 0 leaves a block
 * of size 0. On failure returns NULL, and the block stays as it was. */
void *hoard_realloc(void *block, size_t size) HOARD_ATTRIBUTE(alloc_size(2));

/* A block aligned to a power of two. Any other alignment gives NULL and EINVAL. */
void *hoard_aligned_alloc(size_t alignment, size_t size)
    HOARD_ATTRIBUTE(malloc, alloc_align(1), alloc_size(2));

/* As posix_memalign: returns 0, ENOMEM, or EINVAL (alignment is not a power of two, or not a multiple of
 * sizeof(void *); or block is NULL). */
int hoard_posix_memalign(void **block, size_t alignment, size_t size);

/* How many bytes of a block a program may use, constant for its life; 0 for NULL. */
size_t hoard_usable_size(const void *block);

/* Returns unused memory of all heaps to the OS, if the library holds more than keep bytes. Returns 1 if
 * memory went back, else 0, as malloc_trim does. */
int hoard_trim(size_t keep);

/* Asks for a thread of the library that gives unused memory back also while the program is idle, as
 * REAP_OPTIONS=purge_thread=1 does. The thread starts soon. The child of a fork has no such thread until it
 * makes the call too. With purge_thread=0 the call does nothing. It is meant for programs that have threads.
 * Threads: any. */
void hoard_purge_when_idle(void);

/* Registers fn for one call by the thread whose allocation next leaves the fast path. The thread holds no
 * lock of the library then. fn may allocate and start threads; the library keeps errno. The call is for work
 * that the child of a fork postpones, because most children exec. There is one such function at a time: a new
 * one replaces it, and NULL removes it. A forked child has none. Threads: any; functions of pthread_atfork
 * may make the call too. */
void hoard_call_later(void (*fn)(void));

struct hoard_stats {
    size_t live_bytes;         /* in blocks handed out, each at its usable size; chunks of reaps too */
    size_t held_bytes;         /* mapped from the OS for blocks and not purged */
    size_t peak_held_bytes;    /* the greatest held_bytes so far */
    size_t large_bytes;        /* live bytes of blocks above 128 KiB, and some above 32 */
    size_t heaps;              /* heaps in use, without the global heap */
    size_t superblocks;        /* on those heaps, in units of 64 KiB */
    size_t global_superblocks; /* on the global heap, in these units */
    uint64_t slow_mallocs;     /* allocations for which the active superblock had no block */
    uint64_t slow_frees;       /* frees that left the fast path, remote ones included */
    uint64_t remote_frees;     /* frees of another heap's blocks */
    uint64_t transfers;        /* superblocks moved between a heap and the global heap */
    const char *path;          /* "rseq cid", "rseq cpu" or "locked" */
};

/* Fills in stats; approximate while other threads allocate. 0, or -1 and EINVAL for NULL. */
int hoard_stats(struct hoard_stats *stats);

/* Why the heaps have the path of hoard_stats, in a few words. The string is valid as long as the process. */
const char *hoard_path_reason(void);

/* Bytes that went back to the OS since the start. The sum of this result and held_bytes is all that the OS
 * has ever given. */
size_t hoard_returned_bytes(void);

/* A size class of blocks, as hoard_walk_classes shows it. */
struct hoard_class {
    size_t size;        /* bytes of a block */
    size_t superblocks; /* of the class, on all heaps, in units of 64 KiB */
    size_t empty;       /* of superblocks without a live block, in these units */
    size_t blocks;      /* capacity of the superblocks */
    size_t used;        /* live blocks */
    int has_chunks;     /* 1: the blocks are chunks of reaps; 0: memory of malloc and its family */
};

/* Calls fn for each size class that has superblocks: first the classes of malloc's blocks, then those of
 * chunks, each time the smallest first. Stops when fn does not return 0, and returns its last result. Figures
 * are approximate while other threads allocate. fn may allocate. */
int hoard_walk_classes(int (*fn)(const struct hoard_class *sizes, void *arg), void *arg);

/* Writes the figures of hoard_stats, the options in force, and the reason for the path. */
void hoard_report(FILE *out);

/* With REAP_OPTIONAL, defined before the include, each call is weak: a module also loads without the library,
 * and the address of each call is NULL then. */
#ifdef REAP_OPTIONAL
#pragma weak hoard_free
#pragma weak hoard_malloc
#pragma weak hoard_call_later
#pragma weak hoard_calloc
#pragma weak hoard_realloc
#pragma weak hoard_aligned_alloc
#pragma weak hoard_posix_memalign
#pragma weak hoard_usable_size
#pragma weak hoard_trim
#pragma weak hoard_stats
#pragma weak hoard_report
#pragma weak hoard_path_reason
#pragma weak hoard_returned_bytes
#pragma weak hoard_walk_classes
#pragma weak hoard_purge_when_idle
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
