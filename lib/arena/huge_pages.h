/* SPDX-License-Identifier: Apache-2.0 */
/* huge_pages.h: which arenas have huge pages, and whether they are worth having, as their first touches show.
 *
 * In a virtual machine whose host has yet to find the memory, 2 MiB take 2 to 5 ms, and 0.2 ms elsewhere;
 * 512 small pages, which the kernel takes from what was in use just before, need 0.3 to 1.4 ms. So the first
 * touch of each huge page is timed, and after a slow one arenas are made without: first a few, then ever
 * more, until a page is quick. Any thread may call these, at any time; no lock.
 */
#ifndef HUGE_PAGES_H
#define HUGE_PAGES_H

#include "arena/arena.h"

/* For so many arenas, made now? Each no brings the next yes nearer. */
bool huge_pages_are_quick(unsigned arenas);

/* Writes to the first byte of a slot that reads as zero and may have huge pages behind it. Did one come, and
 * slowly? */
bool huge_pages_touch(void *start);

/* What new arenas are to be whose first object has n slots. */
struct arena_nature {
    bool huge, sparse;
};
struct arena_nature arena_nature_for(unsigned n, bool sparse, unsigned arenas_made);

/* Tells the kernel, of new arenas and of a mapping. */
void arena_advise(char *base, size_t size, struct arena_nature nature);
void arena_advise_mapping(struct arena *arena, size_t size);

/* The arena, and those beside it that were made together with it, get no more huge pages. */
void arena_no_huge_pages(struct arena *arena);

#endif
