/* SPDX-License-Identifier: Apache-2.0 */
/* apart.h: objects that lie apart: each one is a block of a malloc that looks for mistakes.
 *
 * This is the one mode for debugging. A process has it from its start or never: under Valgrind's Memcheck and
 * AddressSanitizer, where libreap-trace records, and with the options bypass and harden. Each object is a
 * block of its own, whose header lies elsewhere. For marks, limits, walks and all else the block is a chunk
 * with one large object (REAP_WHOLE).
 *
 *     the process's malloc     | the bytes asked for | rest of 16 bytes |                  (a tool, bypass)
 *     this library's           | zone: 16 bytes | the bytes asked for | rest | zone |      (harden)
 *
 * Where malloc is the tool's own, this module adds that nobody may touch the rest. Where malloc is this
 * library's, it tells the tool of each block. With harden, rest and zones have a pattern, which each call for
 * the object checks. A freed object has another one and waits in quarantine, at whose end it is checked.
 *
 * A table finds an object's header by its address. Headers of freed objects stay in it until 16384 more
 * objects were freed.
 *
 * Invariants
 *     - a block of this library's malloc does not start with its object, so free() can tell the two apart
 *     - an object has whole units of 16 bytes, so the links of freed objects fit into the smallest object
 *     - a live object has one header in the table; no two live objects overlap
 *
 * Who may call: the region layer makes, resizes and gives back objects (reap_chunk.c), and the reap layer
 * asks about them. Threads: any; one thread at a time uses an object, but any may ask for its size. Lock
 * rank: concurrency.md; a thread that holds the table's lock calls nothing.
 */
#ifndef APART_H
#define APART_H

#include "hoard/apart_table.h"

enum { APART_LINE = 256 /* bytes for a line's text about an object */ };

/* Sets apart_on (apart_table.h), once. */
void apart_start(void);

/* Allocates an object of `size` bytes at an alignment. Returns its header, all zero, and sets *object, and
 * *held to the bytes that it costs. NULL without memory. */
void *apart_alloc(size_t alignment, size_t size, void **object, size_t *held);

/* Frees the object. The header keeps its contents for later questions. */
void apart_free(void *header);

/* Says that the program may touch so many bytes of the object from now on, at most its whole units; the
 * second one that it may touch so many at least. */
void apart_set_size(void *header, size_t size);
void apart_widen(void *header, size_t size);

/* Returns true if no zone, and no rest, was written to. */
bool apart_is_intact(const void *header);

/* Lets the library read an object's first 16 bytes, which a tool may take for undefined. */
void apart_use(const void *object);

/* Notes the object's reap, its handle and name's beginning, for lines. By the object's thread only. */
void apart_note(void *header, const void *reap, const char *name);

/* Writes "WHAT; object of N bytes, first changed byte at offset N, reap HANDLE NAME", as far as known, for
 * a line that ends the program; without zones WHAT alone. Offsets count from the object's start. */
void apart_tell(const void *header, const char *what, char *line, size_t room);

/* Looks at all freed objects that wait: when the program exits. */
void apart_check_freed(void);

#endif
