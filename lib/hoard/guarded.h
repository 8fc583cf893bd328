/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.h: guarded objects: each has memory of its own.
 *
 * Some options give each object of a reap memory of its own, to find mistakes. The memory comes from the
 * process's malloc, which tools know (bypass), or from the backend, with zones around it that the program
 * must not touch (redzone), and stays for a while after the object is freed (harden). The object's header
 * lies elsewhere:
 *
 *     | front zone | object: the bytes asked for | rest of 16 bytes | zone behind |
 *         ^ block     ^                                                              header, elsewhere
 *
 * The front zone exists with redzones, and in blocks of the backend, so that free() does not take an object
 * for a block. With redzones, zones and the rest have a pattern, and are hidden from tools. With harden,
 * freed memory has another pattern until it is given back, and is checked then.
 *
 * Any address in an object finds its header (guarded_map.h), also after the object was freed, until its
 * memory is another object's or 16384 more objects were freed.
 *
 * Threads: any; one thread at a time uses an object.
 */
#ifndef GUARDED_H
#define GUARDED_H

#include "base/base.h"

enum {
    GUARDED_HEADER = 128, /* bytes of a header */
    GUARDED_LINE = 256    /* bytes for a line's text about an object */
};

/* True if all objects are guarded. Only guarded_start sets it; it reads the options. */
extern HIDDEN bool guarded_on;
void guarded_start(void);

/* True if objects are blocks of the process's malloc. */
bool guarded_is_foreign(void);

/* Allocates an object of `size` bytes, a multiple of 16, at an alignment. Returns its header, all zero, and
 * sets *object, and *held to the bytes that it costs. NULL without memory. */
void *guarded_alloc(size_t alignment, size_t size, void **object, size_t *held);

/* Frees the object. The header keeps its contents for later questions. */
void guarded_free(void *header);

/* Sets the number of bytes that the program asked for, at most as many as guarded_alloc gave. The program
 * must not touch the rest. */
void guarded_set_size(void *header, size_t size);

/* The bytes that guarded_alloc gave. */
size_t guarded_room(const void *header);

/* Returns true if the zones are unchanged. */
bool guarded_is_intact(const void *header);

/* Notes the object's reap for lines about it: the handle, and the beginning of the name. NULL: as it was
 * noted before. Only the thread that has the object calls this. */
void guarded_note(void *header, const void *reap, const char *name);

/* Writes "WHAT; object of N bytes, first changed byte at offset N, reap HANDLE NAME", as far as these are
 * known, for a line after which the program ends; without zones WHAT alone. The offset counts from the
 * object's start. In a changed zone it is less than 0, or at least the object's size. */
void guarded_tell(const void *header, const char *what, char *line, size_t room);

/* Checks the pattern in all kept memory of freed objects, and gives the memory back. */
void guarded_check_freed(void);

#endif
