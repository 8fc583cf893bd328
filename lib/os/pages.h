/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h: memory from the OS.
 *
 * One contract per primitive; nothing above this file calls mmap. Sizes and alignments are
 * multiples of the page size. errno is kept by all that do not fail.
 */
#ifndef PAGES_H
#define PAGES_H

#include "base/base.h"

/* Bytes, the unit of rounding: the largest page that a kernel of the architecture may have, so that what is
 * rounded to it is unmapped and purged whole under every one. */
#ifdef __aarch64__
enum { PAGE = 65536 };
#else
enum { PAGE = 4096 };
#endif

/* Maps size zero bytes, readable and writable, at a multiple of alignment (a power of two).
 * NULL with ENOMEM when the kernel refuses. */
void *pages_map(size_t size, size_t alignment);

/* Whether the kernel may put huge pages behind it, whatever it does by itself. */
void pages_huge(void *start, size_t size, bool may);

/* Writes zero to the first byte: what that took, in ns of this thread's CPU time. */
uint64_t pages_touch(void *start);

/* What the OS does not take back, since the process has too many mappings, is emptied, and serves again. */
void pages_unmap(void *start, size_t size);

/* The same, but false, and nothing is done, when the OS refuses. */
bool pages_try_unmap(void *start, size_t size);

/* Gives the memory back to the OS and keeps the addresses: reads as zero afterwards. false: it was kept. */
bool pages_purge(void *start, size_t size);

/* Moves a mapping over another one, of the new size, which is replaced. false: it is where it was, and the
 * other one may be gone. */
bool pages_move(void *start, size_t old_size, void *place, size_t new_size);

/* Resizes a mapping where it stands. */
bool pages_resize(void *start, size_t old_size, size_t new_size);

/* Milliseconds from an arbitrary start, a few ns to read. */
uint64_t pages_clock(void);

#endif
