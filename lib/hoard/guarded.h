/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.h: memory for single objects, each apart from all others.
 *
 * With some options each object of a reap has memory of its own, for those who look for mistakes: the
 * process's malloc, which tools know (bypass), or the backend's, with zones around it that nobody may touch
 * (redzone), and kept for a while after it was freed (harden). What the reap keeps of it lies elsewhere:
 *
 *     | front zone | object: what was asked for | rest of 16 bytes | zone behind |
 *         ^ block     ^                                                                 header, elsewhere
 *
 * The front zone is there with redzones, and in blocks of the backend, so that free() does not take an object
 * for a block. Zones and the rest are filled with a pattern where redzones were asked for, and hidden from
 * tools; memory that was freed, with harden, is filled with another one until it is given back, and looked
 * through then.
 *
 * A header is found by any address in its object (guarded_map.h), also after the object was freed, until the
 * memory is another object's or 16384 were freed later.
 *
 * Threads: any; one object is one thread's.
 */
#ifndef GUARDED_H
#define GUARDED_H

#include "base/base.h"

enum {
    GUARDED_HEADER = 128, /* bytes of a header */
    GUARDED_LINE = 256    /* bytes for what is said of an object */
};

/* Is each object apart? By guarded_start alone, which reads the options. */
extern HIDDEN bool guarded_on;
void guarded_start(void);

/* Is an object a block of the process's malloc? */
bool guarded_is_foreign(void);

/* Memory for an object of so many bytes, a multiple of 16, at an alignment: its header, all zero, the object,
 * and the bytes that this costs. NULL: no memory. */
void *guarded_alloc(size_t alignment, size_t size, void **object, size_t *held);

/* The object is not used any more. What is in the header stays for those who ask. */
void guarded_free(void *header);

/* Tells how many bytes were asked for, at most as many as guarded_alloc gave; the rest is not to be touched.
 */
void guarded_set_size(void *header, size_t size);

/* The bytes that guarded_alloc gave. */
size_t guarded_room(const void *header);

/* Has nobody written to the zones? */
bool guarded_is_intact(const void *header);

/* Whose the object is, for lines about it: the reap's handle, and its name, of which the beginning is kept.
 * NULL: as it was noted before. By the thread that has the object. */
void guarded_note(void *header, const void *reap, const char *name);

/* "WHAT; object of N bytes, first changed byte at offset N, reap HANDLE NAME", as far as it is known, for a
 * line after which the program ends; without zones WHAT alone. The offset is from the object's start: less
 * than 0, or at least its size, where its zones were written to. */
void guarded_tell(const void *header, const char *what, char *line, size_t room);

/* Looks through what is kept. */
void guarded_check_freed(void);

#endif
