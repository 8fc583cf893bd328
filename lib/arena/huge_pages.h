/* SPDX-License-Identifier: Apache-2.0 */
/* huge_pages.h: which arenas have huge pages; their first touches show whether they are worth it.
 *
 * The first touch of a huge page (2 MiB) takes 2 to 5 ms in a virtual machine whose host has yet to find the
 * memory, and 0.2 ms elsewhere. 512 small pages, which the kernel takes from recently used memory, need 0.3
 * to 1.4 ms. So the library times the first touch of each huge page. After a slow touch new arenas have no
 * huge pages: first a few arenas, then ever more, until a touch is quick. Threads: any; no lock.
 */
#ifndef HUGE_PAGES_H
#define HUGE_PAGES_H

#include "arena/arena.h"

/* Returns true if the next `arenas` arenas are to have huge pages. Each false brings the next true nearer. */
bool huge_pages_are_quick(unsigned arenas);

/* Writes to the first byte of a slot that reads as zero and may have huge pages behind it. Returns true if
 * that brought a huge page, and slowly. */
bool huge_pages_touch(void *start);

/* The nature of new arenas whose first object has n slots. */
struct arena_nature {
    bool huge, sparse;
    bool as_system; /* no advice: the system decides, as for mappings */
};
struct arena_nature arena_nature_for(unsigned n, bool sparse, unsigned arenas_made);

/* Advises the kernel about huge pages for new arenas, and for a mapping. */
void arena_advise(char *base, size_t size, struct arena_nature nature);
void arena_advise_mapping(struct arena *arena, size_t size);

/* Returns true if the system may put huge pages behind mappings. For the arenas that they become. */
bool arena_mapping_may_be_huge(void);

/* Takes huge pages from the arena. */
void arena_no_huge_page_here(struct arena *arena);

/* Takes huge pages from the arena, and from those beside it that were made together with it. */
void arena_no_huge_pages(struct arena *arena);

#endif
