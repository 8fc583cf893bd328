/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h: memory from the OS.
 *
 * Nothing above this file calls mmap. Sizes and alignments are multiples of the page size. A call that
 * succeeds keeps errno.
 */
#ifndef PAGES_H
#define PAGES_H

#include "base/base.h"

/* The unit of rounding, in bytes: the largest page that a kernel of the architecture may have. So a range
 * that is rounded to it can be unmapped and purged as a whole under each of them. */
#ifdef __aarch64__
enum { PAGE = 65536 };
#else
enum { PAGE = 4096 };
#endif

/* Maps size zero bytes, readable and writable, at a multiple of alignment (a power of two).
 * NULL with ENOMEM when the kernel refuses. */
void *pages_map(size_t size, size_t alignment);

/* Reserves addresses, which must not be touched; pages_commit makes a range of them zero bytes, once. NULL
 * and false with ENOMEM when the kernel refuses. */
void *pages_reserve(size_t size);
bool pages_commit(void *start, size_t size);

/* Names a whole mapping: /proc/PID/maps and smaps show it as [anon:NAME]. A name of a part would split the
 * mapping, and neighbours of one name stay one. Where the kernel has no names (Linux before 5.17, or built
 * without them), or a sandbox refuses, the first call finds it out, and later ones do nothing. */
#define PAGES_HEAP "reap heap"
#define PAGES_POOLS "reap pools"
#define PAGES_TABLES "reap tables"
void pages_name(void *start, size_t size, const char *name);

/* pages_map for the allocator's own tables, with a name. */
void *pages_map_table(size_t size);

/* Says whether the kernel may put huge pages behind the range, whatever its own setting is. */
void pages_huge(void *start, size_t size, bool may);

/* Writes zero to the first byte. Returns the CPU time of this thread that it took, in ns. */
uint64_t pages_touch(void *start);
extern HIDDEN uint64_t (*pages_cpu_clock)(void); /* its clock, in ns; a test has one of its own */

/* Unmaps a range. Where the OS refuses, since the process has too many mappings, this empties the range and
 * keeps it for later calls of pages_map. */
void pages_unmap(void *start, size_t size);

/* Unmaps a range. false: the OS refused, and nothing was done. */
bool pages_try_unmap(void *start, size_t size);

/* Gives the memory back to the OS; the addresses stay, and read as zero. false: the OS refused. */
bool pages_purge(void *start, size_t size);

/* Lets the process touch the range, or not. false: the OS refused. */
bool pages_protect(void *start, size_t size, bool may_touch);

/* Moves a mapping over another mapping, of the new size, and replaces that. false: the first mapping is where
 * it was, and the other one may be gone. */
bool pages_move(void *start, size_t old_size, void *place, size_t new_size);

/* Moves the memory of a range of anonymous memory to a place that the kernel chooses, and returns that. The
 * range stays mapped, and reads as zero. NULL: the OS refused, and nothing was done. */
void *pages_lift(void *start, size_t size);

/* Resizes a mapping in place. false: the OS refused. */
bool pages_resize(void *start, size_t old_size, size_t new_size);

/* Returns milliseconds from an arbitrary start. Takes a few ns once pages_find_clock has found the kernel's
 * own function: libc's may be another library's, which allocates, and threads with locks call this. */
void pages_find_clock(void);
uint64_t pages_clock(void);

#endif
